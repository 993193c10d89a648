from benchmarks.studies.paper_programs.study import main

main()
