"""Raw text -> sequences of words."""
