"""Rows: from files and frames to features, labels, parts and batches."""
