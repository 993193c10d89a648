from benchmarks.studies.lp_training.study import main

main()
