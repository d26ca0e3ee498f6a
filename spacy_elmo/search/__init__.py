"""Semantic search: vectors of sentences, an index of them on disk, and its search by NumPy or
faiss."""
