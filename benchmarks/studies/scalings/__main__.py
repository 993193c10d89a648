from benchmarks.studies.scalings.study import main

main()
