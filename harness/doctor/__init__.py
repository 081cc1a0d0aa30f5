"""What this machine can do, before anything is spent."""
