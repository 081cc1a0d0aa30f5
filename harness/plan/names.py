"""Names that one file uses and another must define: in plans, images, claims and workloads."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from harness.image.images import load_images
from harness.image.lock import lock_disagreements
from harness.plan import plan_file
from harness.plan.plan_file import Measure
from harness.record.published.claim_set import read_claims, suggest_name

SHARES = ("accuracy", "auc")
OF_LIBRARIES = "import timm"
"""Imported by a workload that takes whatever model torchvision and timm have."""
LIBRARY_MODELS = Path("workloads") / "models.txt"
"""All those, in the versions that the images are locked to."""

_PROTOCOL = re.compile(r"\b[a-z][a-z-]*/[0-9]+\b")


def name_problems(root: Path) -> Iterator[str]:
    """Yield a sentence for each name in a plan, image or claim that the rest of the clone lacks."""
    images, plans = load_images(root).images.values(), plan_file.plan_files(root)
    for name, path in plans.items():
        for measure in plan_file.load_plan(root, name).measure:
            for clause in _measure_problems(root, measure, {image.name for image in images}):
                yield f"plans/{path.name}: {clause}"
    for image in images:
        yield from lock_disagreements(image, root)
    for claim in read_claims(root).claims:
        for name in sorted(claim.plans.keys() - plans.keys()):
            yield f"claim '{claim.id}': '{name}' is no plan{suggest_name(name, plans)}"


def _measure_problems(root: Path, measure: Measure, images: Collection[str]) -> Iterator[str]:
    """Yield a clause for each unknown name of a measure."""
    workloads = {path.stem: path for path in (root / "workloads").glob("*.py")}
    if measure.workload not in workloads:
        yield f"'{measure.workload}' is no workload{suggest_name(measure.workload, workloads)}"
        return
    for image in measure.images:
        if image not in images:
            yield f"'{image}' is no image{suggest_name(image, images)}"
    # The user's own file brings protocols and models of its own.
    if measure.file is not None:
        return
    protocols = set(_PROTOCOL.findall(workloads[measure.workload].read_text(encoding="utf-8")))
    if measure.protocol not in protocols:
        meant = suggest_name(measure.protocol, protocols)
        yield f"'{measure.protocol}' is no protocol of {measure.workload}{meant}"
    yield from workload_problems(root, measure)


def workload_problems(root: Path, measure: Measure) -> Iterator[str]:
    """Yield a clause for each option, model or target that its workload lacks; a user's file has any."""
    path = root / "workloads" / f"{measure.workload}.py"
    if measure.file is not None or not path.is_file():
        return
    source, what = path.read_text(encoding="utf-8"), measure.workload
    known = _shared_strings(root) | _strings(source)
    for name in sorted(measure.options.keys() - known):
        yield f"'{name}' is no option of {what}{suggest_name(name, known)}"
    if OF_LIBRARIES in source:
        known = library_models(root)
    models = measure.model if isinstance(measure.model, list | tuple) else [measure.model]
    for name in sorted(map(str, {*models})):
        # timm's own names may have the prefix `timm/`, and a tag of weights after a dot.
        if not {name, name.removeprefix("timm/").partition(".")[0]} & known:
            yield f"'{name}' is no model of {what}{suggest_name(name, known)}"
    most = max(measure.targets, default=0)
    if most > 1 and _strings(source) & set(SHARES):
        yield f"a target of {most:g} is no share, as {what}'s are; is {most / 100:g} meant?"


@cache
def library_models(root: Path) -> frozenset[str]:
    """Return the names of all classifiers that torchvision and timm build."""
    lines = (root / LIBRARY_MODELS).read_text(encoding="utf-8").splitlines()
    return frozenset(name for line in lines if not line.startswith("#") for name in line.split())


@cache
def _shared_strings(root: Path) -> frozenset[str]:
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
