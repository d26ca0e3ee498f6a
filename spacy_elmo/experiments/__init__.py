"""The comparisons of Peters et al. 2018 on one's own data: variants, training runs, probes,
nearest contexts, results, tables, figures and reports."""
