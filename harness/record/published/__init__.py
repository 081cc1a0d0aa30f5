"""What others published, and what cards can do on paper."""
