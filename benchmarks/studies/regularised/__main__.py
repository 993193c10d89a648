from benchmarks.studies.regularised.study import main

main()
