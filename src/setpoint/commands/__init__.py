"""What each command of the command line does: one file a command, its `main` called with what `cli` declares."""
