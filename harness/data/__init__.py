"""The data sets: which there are, where they lie, and how they come here."""
