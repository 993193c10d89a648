from benchmarks.studies.lp_gradients.study import main

main()
