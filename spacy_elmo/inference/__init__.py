"""Compute layers without gradients, as fast as this machine can."""
