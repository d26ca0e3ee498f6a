"""Code that several tasks share: torch layers, encoders, text pairs, corpora, base classes."""
