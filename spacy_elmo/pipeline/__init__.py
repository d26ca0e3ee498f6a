"""The components, and the functions that a config can name."""
