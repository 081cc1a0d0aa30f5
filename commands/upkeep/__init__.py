"""What keeps the clone whole: its checks, its schemas and locks, and what may be removed."""
