"""The commands of the command line, one file per command; `main` takes the options that `cli` declares."""
