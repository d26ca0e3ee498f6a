"""Annotations of a pipeline as text and drawings, and the page of `elmo explore`."""
