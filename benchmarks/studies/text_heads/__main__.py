from benchmarks.studies.text_heads.study import main

main()
