"""What one session says of two sides that it measured in turns: the same under two names, or two stacks."""
