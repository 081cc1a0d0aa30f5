"""How sure is this: what is in doubt, what would change the answer, and how units differ."""
