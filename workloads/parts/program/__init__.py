"""A foreign program as a child of its trial: its source tree, its process, and what its output says."""
