"""From a file to numbers: frames, what training saw in each column, features and labels."""
