from benchmarks.studies.small_nets.study import main

main()
