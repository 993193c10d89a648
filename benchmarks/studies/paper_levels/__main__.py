from benchmarks.studies.paper_levels.study import main

main()
