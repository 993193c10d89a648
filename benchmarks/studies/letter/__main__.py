from benchmarks.studies.letter.study import main

main()
