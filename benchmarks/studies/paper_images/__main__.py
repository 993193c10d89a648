from benchmarks.studies.paper_images.study import main

main()
