"""Comparisons of Peters et al. 2018 on the user's own data: runs, nearest contexts, plots."""
