"""Names that stand in one file and must be found in another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from harness.data.catalog import DATASETS
from harness.image.catalog import load_images
from harness.image.lock import disagreements
from harness.plan import plan
from harness.record.claims import load_claims, nearest


def problems(root: Path) -> Iterator[str]:
    """A sentence for each name in a plan, a claim or an image that the rest of the clone does not have."""
    workloads = {path.stem for path in (root / "workloads").glob("*.py")}
    for name in plan.names(root):
        for measure in plan.load(root, name).measure:
            if measure.workload not in workloads:
                meant = nearest(measure.workload, workloads)
                yield f"plans/{name}.toml: '{measure.workload}' is no workload{meant}"
            if measure.data is not None and measure.data not in DATASETS:
                yield f"plans/{name}.toml: '{measure.data}' is no data set{nearest(measure.data, DATASETS)}"
    # A figure may be of a workload that is not here; a name that is nearly one of those that are is a typo.
    claimed = {claim.workload: claim.id for claim in load_claims(root).claims}
    for workload in sorted(claimed.keys() - workloads):
        alike = [known for known in workloads if _digits(known) == _digits(workload)]
        if meant := nearest(workload, alike):
            yield f"results/claims: '{claimed[workload]}' is of workload '{workload}'{meant}"
    for image in load_images(root).images.values():
        yield from disagreements(image, root)


def _digits(name: str) -> str:
    """Two names that differ in a number, as of a data set, are two things and no typo."""
    return re.sub(r"\D", "", name)
