"""The parts below page one, in their order: each a view of the Analysis, null where it has nothing to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from report.analysis import Analysis
from report.page.parts import (
    acceptance,
    costs,
    expected,
    limits,
    pairs,
    published,
    ran,
    uncertainty,
    workloads,
)
from report.page.systems import Systems

PARTS: tuple[tuple[str, Callable[[Analysis, Systems], Any]], ...] = (
    ("pairs", pairs.view),
    ("published", published.view),
    ("workloads", workloads.view),
    ("limits", limits.view),
    ("costs", costs.view),
    ("expected", expected.view),
    ("acceptance", lambda analysis, systems: acceptance.view(analysis)),
    ("uncertainty", uncertainty.view),
    ("ran", ran.view),
)
