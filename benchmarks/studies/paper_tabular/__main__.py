from benchmarks.studies.paper_tabular.study import main

main()
