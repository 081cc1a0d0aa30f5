"""A plan at a terminal."""
