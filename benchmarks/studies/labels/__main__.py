from benchmarks.studies.labels.study import main

main()
