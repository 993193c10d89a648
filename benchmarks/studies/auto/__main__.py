from benchmarks.studies.auto.study import main

main()
