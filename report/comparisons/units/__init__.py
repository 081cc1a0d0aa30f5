"""Units of one card: how far they lie apart, and which of them stands out."""
