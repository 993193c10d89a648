from benchmarks.studies.fixed_fpr.study import main

main()
