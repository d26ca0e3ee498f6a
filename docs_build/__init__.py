"""What the documentation site is built with, beside MkDocs: the reference, made from the code."""
