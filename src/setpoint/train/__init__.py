"""Methods of training: from a problem and data to a model that makes scores."""
