"""What happened at a threshold: steps, counts, rates, curves and areas. Knows only tensors."""
