"""One run: train, decide, judge, compare; kept on disk, resumed."""
