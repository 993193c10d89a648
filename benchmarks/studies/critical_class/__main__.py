from benchmarks.studies.critical_class.study import main

main()
