from benchmarks.studies.estimates.study import main

main()
