"""What happens at, or for, a site that is not this machine."""
