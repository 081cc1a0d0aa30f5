"""From a plan to records: setup, session, one trial after another."""
