"""What a plan names and its workload's own file does not know: models, options, targets of another kind."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from harness.plan.plan import Measure

SHARES = ("accuracy", "auc")
OF_LIBRARIES = "parts.networks.models"
"""Imported by a workload that takes whatever model torchvision and timm have."""


def problems(root: Path, measure: Measure) -> Iterator[str]:
    """A clause for each; none of a file of the user's own, which brings names of its own."""
    path = root / "workloads" / f"{measure.workload}.py"
    if measure.file is not None or not path.is_file():
        return
    source, what = path.read_text(encoding="utf-8"), measure.workload
    known = of_workload(root, what)
    for name in sorted(measure.options.keys() - known):
        yield f"'{name}' is no option of {what}{_nearest(name, known)}"
    models = measure.model if isinstance(measure.model, list | tuple) else [measure.model]
    for name in sorted({str(model) for model in models} - known):
        if OF_LIBRARIES not in source:
            yield f"'{name}' is no model of {what}{_nearest(name, known)}"
    most = max(measure.targets, default=0)
    if most > 1 and _strings(source) & set(SHARES):
        yield f"a target of {most:g} is no share, as {what}'s are; is {most / 100:g} meant?"


def of_workload(root: Path, workload: str) -> frozenset[str]:
    """Each string in a workload's file and in what all workloads share; of one that is not here, in all."""
    own = root / "workloads" / f"{workload}.py"
    files = [own] if own.is_file() else (root / "workloads").glob("*.py")
    return _shared(root).union(*(_strings(path.read_text(encoding="utf-8")) for path in files))


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, known, n=3, cutoff=0.6)
    return f"; the nearest are {', '.join(near)}" if near else ""


@cache
def _shared(root: Path) -> frozenset[str]:
    files = (
        path for folder in ("parts", "frameworks") for path in (root / "workloads" / folder).rglob("*.py")
    )
    return frozenset().union(*(_strings(path.read_text(encoding="utf-8")) for path in files))


@cache
def _strings(source: str) -> frozenset[str]:
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return frozenset()
    texts = (node.value for node in nodes if isinstance(node, ast.Constant))
    return frozenset(text for text in texts if isinstance(text, str))
