from benchmarks.studies.default_study.study import main

main()
