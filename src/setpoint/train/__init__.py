"""Repeat over data: batches, the loop, selection, calibration."""
