"""Teachers of pretraining: what a biLM learns beside its own language model."""
