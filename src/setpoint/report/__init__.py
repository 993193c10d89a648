"""The report: one page about a finished run, from its scores, labels and history."""
