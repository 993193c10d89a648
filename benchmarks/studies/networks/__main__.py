from benchmarks.studies.networks.study import main

main()
