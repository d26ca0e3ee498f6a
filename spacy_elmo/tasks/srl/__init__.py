"""Semantic roles: who did what to whom. The component, its model, scores and published formats."""
