"""What every room may use: atomic writing, safe reading, digests, checks of settings,
values in messages."""
