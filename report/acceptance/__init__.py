"""What a delivered machine must reach, and whether it does."""
