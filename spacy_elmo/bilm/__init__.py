"""The network in plain torch: characters, word tables, CNN, LSTM and its gradient,
the layout of a batch, the shape of all weights. No file access, no spaCy."""
