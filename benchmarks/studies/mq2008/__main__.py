from benchmarks.studies.mq2008.study import main

main()
