"""The pinned software stacks: which there are, how each is built, and its lock."""
