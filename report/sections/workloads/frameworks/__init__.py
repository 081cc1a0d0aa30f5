"""Frameworks as a dimension like cards: what each is, how fast, and what it makes of its devices."""
