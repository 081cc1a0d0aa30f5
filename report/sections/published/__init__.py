"""What others published: each study drawn again with this machine in it, and each claim's verdict."""
