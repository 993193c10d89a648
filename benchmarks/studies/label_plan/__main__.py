from benchmarks.studies.label_plan.study import main

main()
