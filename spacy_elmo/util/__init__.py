"""What every room may use: atomic writes, safe reads, digests, locks, child processes, checks of
settings, vector arithmetic, values in messages."""
