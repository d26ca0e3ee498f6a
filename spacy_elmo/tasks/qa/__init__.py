"""Question answering: the component "elmo_qa"."""
