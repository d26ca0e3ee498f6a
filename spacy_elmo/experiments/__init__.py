"""The paper's experiments on one's own data: what to compare, runs, subsets, summaries."""
