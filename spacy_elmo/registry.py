"""Registries that other packages can add to through entry points."""

import catalogue

# Group "spacy_elmo_checkpoint_readers": objects of type
# `spacy_elmo.checkpoints.CheckpointReader`, asked in the order of their names.
checkpoint_readers = catalogue.create("spacy_elmo", "checkpoint_readers", entry_points=True)
