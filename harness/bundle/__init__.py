"""Records in transit: one archive, what makes its records good, and whose it is."""
