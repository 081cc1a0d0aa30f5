"""What ran: software, machines, failures, and what was left out."""
