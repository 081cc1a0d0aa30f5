"""The data sets: which there are, where they are, and how they come here."""
