"""What others published, and what cards can do on paper: the models of results/claims and results/cards.toml."""
