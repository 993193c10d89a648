from benchmarks.studies.precision_walk.study import main

main()
