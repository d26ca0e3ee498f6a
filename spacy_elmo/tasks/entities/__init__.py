"""Named entities: formats of published data. The components are spaCy's `ner` and `spancat`."""
