"""Runs: train, set the threshold, judge and compare; save a run on disk and resume it."""
