"""Vectors of large amounts of text: readers, rows, shards, and the processes that compute them."""
