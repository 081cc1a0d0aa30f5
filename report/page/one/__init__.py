"""Page one, for each purpose: its headline, chips, picture, table and notes."""
