"""From scores and labels to a decision with its proof; trains nothing, knows no model."""
