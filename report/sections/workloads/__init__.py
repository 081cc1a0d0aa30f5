"""Each workload: its charts, its figures, and every trial of it."""
