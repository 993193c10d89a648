from benchmarks.studies.batch_size.study import main

main()
