"""Coreference: the component "elmo_coref"."""
