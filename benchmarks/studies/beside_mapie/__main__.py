from benchmarks.studies.beside_mapie.study import main

main()
