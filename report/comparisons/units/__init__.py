"""Units of one card: how far they lie apart."""
