"""A run or a tuned classifier as one ONNX file: columns in, scores and decisions out."""
