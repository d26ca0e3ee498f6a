"""A biLM with its softmax: what it predicts, and how well."""
