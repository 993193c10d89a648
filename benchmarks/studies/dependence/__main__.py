from benchmarks.studies.dependence.study import main

main()
