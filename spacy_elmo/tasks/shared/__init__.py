"""What several tasks use: pairs of texts, torch layers, data files, the trainable base."""
