"""Semantic search: vectors of sentences, and an index of them on disk."""
