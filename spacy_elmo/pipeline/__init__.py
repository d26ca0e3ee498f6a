"""The components, and what a config can name."""
