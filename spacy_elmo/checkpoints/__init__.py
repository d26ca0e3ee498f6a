"""Weights on disk. A format is a `CheckpointReader` in a file of its own."""
