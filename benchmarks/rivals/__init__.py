"""ELMo and other vectors under the same conditions: see ../rivals.py."""
