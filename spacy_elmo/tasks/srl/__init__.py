"""Semantic roles: the component "elmo_srl"."""
