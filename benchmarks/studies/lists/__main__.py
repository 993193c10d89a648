from benchmarks.studies.lists.study import main

main()
