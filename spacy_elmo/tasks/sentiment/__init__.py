"""Sentiment: an architecture for spaCy's `textcat`, and formats of published data."""
