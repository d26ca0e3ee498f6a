"""Weights on disk: our folder, AllenNLP / bilm-tf HDF5, and the loaders that a config names. A
format is a `CheckpointReader` in a file of its own."""
