"""What several tasks use: torch layers, encoders, pairs of texts, corpora, base classes."""
