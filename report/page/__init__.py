"""The page: built, rendered, printed, and made once more."""
