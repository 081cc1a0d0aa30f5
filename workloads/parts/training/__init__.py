"""Training by one shared function: where a process trains, its batches, and the loop."""
