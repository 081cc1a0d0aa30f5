"""Records and claims in, one page out. Knows the records of `harness`, and nothing of how they were made."""
