from benchmarks.studies.promises.study import main

main()
