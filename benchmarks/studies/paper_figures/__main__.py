from benchmarks.studies.paper_figures.study import main

main()
