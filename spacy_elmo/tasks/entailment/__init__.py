"""Textual entailment: the component "elmo_entailment"."""
