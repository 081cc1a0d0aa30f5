"""What this machine can do, said before anything is spent."""
