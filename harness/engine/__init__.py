"""Where environments are made and trials run: containers, virtual environments, or right here."""
