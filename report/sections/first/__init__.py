"""Page one: what it leads with, and the questions that it answers."""
