"""SLURM: batch scripts, and the commands that send, follow and end their jobs."""
