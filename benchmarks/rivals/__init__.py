"""What a user would take instead of ELMo, under the same conditions: see ../rivals.py."""
