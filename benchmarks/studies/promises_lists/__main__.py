from benchmarks.studies.promises_lists.study import main

main()
