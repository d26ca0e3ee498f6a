"""The reference pages of the documentation site, made from the code."""
