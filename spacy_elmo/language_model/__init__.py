"""A biLM with its softmax: its predictions, and how good they are."""
