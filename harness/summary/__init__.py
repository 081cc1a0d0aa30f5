"""What one trial's raw samples say: its steady state, its statistics, what is wrong with it."""
