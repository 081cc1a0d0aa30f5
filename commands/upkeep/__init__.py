"""What keeps the clone whole: its checks, its locks, and what may be removed."""
