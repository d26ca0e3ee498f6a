"""Weights on disk: formats, loaders and named models."""
