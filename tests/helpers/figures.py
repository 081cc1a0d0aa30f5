"""The figures, states and orders of a folder of records, as plain data under names of their own.

`figures_of` is held against the files in tests/golden/figures. Its keys and those files are fixed: however
the code is named and cut, they stay, and a figure that changes there has changed for a reader. What may
change with the code are the adapters, the functions of the modules `figures_*`, one for each key and a few
lines long: they alone know what the code calls a thing today.

Left out are words, and what is drawn: no sentence, caption or label stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from report.analysis import Analysis
from tests.helpers import figures_bought, figures_claimed, figures_compared, figures_run
from tests.helpers.plain import plain

Adapter = Callable[[Analysis], Any]

ADAPTERS: dict[str, Adapter] = {
    "lead": attrgetter("lead"),
    "subject": attrgetter("subject"),
    "sessions_standing": figures_compared.sessions_standing,
    "groups": figures_compared.groups,
    "left_over": figures_compared.left_over,
    "precision_speedups": figures_compared.precision_speedups,
    "batch_sweeps": figures_compared.batch_sweeps,
    "scaling_families": figures_compared.scaling_families,
    "expectations": figures_compared.expectations,
    "side_by_side": figures_compared.side_by_side,
    "parities": figures_claimed.parities,
    "early_gates": figures_claimed.early_gates,
    "claims": figures_claimed.claims,
    "claims_counted": figures_claimed.claims_counted,
    "costs": figures_bought.costs,
    "acceptance": figures_bought.acceptance,
    "trials": figures_run.trials,
    "limits": figures_run.limits,
    "failures": figures_run.failures,
    "accounts": figures_run.accounts,
    "unreadable": figures_run.unreadable,
    "selfcheck": figures_run.selfcheck,
}


def figures_of(analysis: Analysis) -> dict[str, Any]:
    """Every figure and state of a page, as JSON has it."""
    return {name: plain(adapter(analysis)) for name, adapter in ADAPTERS.items()}
