"""Training by one shared function: where a process trains, its batches, the loop, and a user's own file."""
