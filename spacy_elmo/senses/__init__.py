"""Word senses: an inventory, what the senses' contexts look like, and the choice."""
