from benchmarks.studies.promises_tables.study import main

main()
