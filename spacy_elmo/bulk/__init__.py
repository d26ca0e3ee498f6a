"""Vectors of large amounts of text: readers, tasks, workers in processes or on a Ray cluster,
atomic shards, a journal to resume from."""
