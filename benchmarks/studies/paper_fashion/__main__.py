from benchmarks.studies.paper_fashion.study import main

main()
