"""A plan as jobs of a cluster's scheduler: sent, followed from any shell, and brought home as records."""
