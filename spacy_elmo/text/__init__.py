"""Raw text to sequences of words."""
