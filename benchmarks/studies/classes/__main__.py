from benchmarks.studies.classes.study import main

main()
