"""The network, in plain torch: no file access, no spaCy."""
