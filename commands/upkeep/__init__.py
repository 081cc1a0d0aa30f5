"""What keeps the clone whole: its checks and its tests."""
