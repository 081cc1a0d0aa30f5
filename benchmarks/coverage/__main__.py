"""How often the product's rules are right: intervals, families, verdicts, purchase, steady state.

    python -m benchmarks.coverage > docs/coverage.csv

Each case draws a few thousand pages and counts how often the product's own functions do what the case asks.
A row that misses its target prints how often the page carries a caveat. Exits 1 where more pages miss than
say so themselves. Two processes share the work.
"""

from __future__ import annotations

import sys

from benchmarks.coverage.tables import rows, table


def main() -> int:
    """Prints the table, and what falls short; returns the exit code."""
    by_group = rows()
    print(table(by_group), end="")
    short = [row for made in by_group.values() for row in made if row.short]
    for row in short:
        print(f"short of its target without a caveat: {row.name}", file=sys.stderr)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
