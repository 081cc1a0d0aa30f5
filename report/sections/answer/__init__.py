"""Page one, and the table of every pair: what was found."""
