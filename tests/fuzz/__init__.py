"""Fuzzing of everything that reads foreign bytes: `python -m tests.fuzz all --minutes 60`.

See docs/security.md, "Fuzzing".
"""
