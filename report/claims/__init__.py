"""Published figures: which of ours each may be held against, and whether it holds."""
