"""Thinc layers: docs -> biLM layers -> one vector per token."""
