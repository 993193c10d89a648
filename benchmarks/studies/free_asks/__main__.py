from benchmarks.studies.free_asks.study import main

main()
