"""The parts below page one, in their order: name, title, and view of the Analysis, null where empty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from report.analysis import Analysis
from report.page.parts import (
    acceptance,
    costs,
    limits,
    pairs,
    published,
    ran,
    uncertainty,
    workloads,
)
from report.page.values import Systems

PARTS: tuple[tuple[str, str, Callable[[Analysis, Systems], Any]], ...] = (
    ("pairs", "Pair by pair", pairs.view),
    ("published", "Published studies", published.view),
    ("workloads", "Workloads", workloads.view),
    ("limits", "What limits the speed", limits.view),
    ("costs", "Costs", costs.view),
    ("expected", "What to expect", lambda analysis, systems: analysis.question.asked or None),
    ("acceptance", "Acceptance", lambda analysis, systems: acceptance.view(analysis)),
    ("uncertainty", "How sure", uncertainty.view),
    ("ran", "What ran", ran.view),
)
