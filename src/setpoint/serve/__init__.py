"""Answering with a saved run: scores and decisions of rows, without PyTorch and without the code that trains."""
