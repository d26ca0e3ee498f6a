"""Semantic search: vectors of sentences, an index of them on disk, its search."""
