from benchmarks.studies.rare_events.study import main

main()
