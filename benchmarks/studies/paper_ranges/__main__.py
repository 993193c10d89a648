from benchmarks.studies.paper_ranges.study import main

main()
