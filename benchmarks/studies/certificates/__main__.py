from benchmarks.studies.certificates.study import main

main()
