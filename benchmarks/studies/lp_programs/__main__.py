from benchmarks.studies.lp_programs.study import main

main()
