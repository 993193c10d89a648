from benchmarks.studies.watching.study import main

main()
