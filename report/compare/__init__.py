"""What may stand side by side: cells, groups and pairs of them, and the figures drawn from these."""
