from benchmarks.studies.promises_kinds.study import main

main()
