"""What every room may use: atomic writing, safe reading, digests, locks, child processes, checks
of settings, values in messages."""
