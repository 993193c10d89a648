from benchmarks.studies.long_tailed.study import main

main()
