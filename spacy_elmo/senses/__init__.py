"""Word senses: an inventory (WordNet), a mean vector for each sense, their training, and the
choice of a sense in context."""
