from benchmarks.studies.tables.study import main

main()
