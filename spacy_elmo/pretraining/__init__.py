"""Train a biLM on a stream of words. No spaCy, no file formats of text."""
