"""The published schemas against the models, and against the files that stand in the project."""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any

from pydantic import BaseModel

from harness.image.images import ImageFile
from harness.plan.plan_file import PlanFile
from harness.record import ClaimFile, Measurement, Record, Reported, Session, TrialSpec
from harness.record.published.program import Program
from harness.record.store import RETIRED
from tests.helpers import ROOT

FOLDER = ROOT / "docs" / "schema"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

_MODELS: dict[str, type[BaseModel]] = {
    "claims": ClaimFile,
    "failure": Reported,
    "images": ImageFile,
    "measurement": Measurement,
    "plan": PlanFile,
    "program": Program,
    "record": Record,
    "session": Session,
    "trial": TrialSpec,
}

_COMPUTED = {"images": ("Image", "name")}
"""Fields that are filled in on reading: no file has them."""

_TABLE = {"type": "object", "additionalProperties": True}


@cache
def schemas() -> dict[str, str]:
    """File name in docs/schema/ → the schema as JSON text (draft 2020-12)."""
    return {f"{name}.schema.json": _text(name, model) for name, model in _MODELS.items()}


def _text(name: str, model: type[BaseModel]) -> str:
    schema = model.model_json_schema(mode="validation")
    if name in _COMPUTED:
        owner, field = _COMPUTED[name]
        _without(_definition(schema, owner), field)
    if name == "claims":
        _with_defaults(schema)
    if name == "record":
        _with_retired(schema)
    return json.dumps({"$schema": DIALECT, **schema}, indent=1, ensure_ascii=False) + "\n"


def _definition(schema: dict[str, Any], name: str) -> dict[str, Any]:
    definition: dict[str, Any] = schema if schema["title"] == name else schema["$defs"][name]
    return definition


def _without(definition: dict[str, Any], field: str) -> None:
    del definition["properties"][field]
    definition["required"] = [name for name in definition["required"] if name != field]


def _with_retired(schema: dict[str, Any]) -> None:
    """Committed records have keys that no new one has: whoever reads them by the schema meets those too."""
    for *path, key in RETIRED:
        part = schema
        for name in path:
            kinds = part["properties"][name].get("anyOf", [part["properties"][name]])
            part = _definition(schema, kinds[0].get("items", kinds[0])["$ref"].rpartition("/")[2])
        assert key not in part["properties"], f"{key} of new records would be dropped at each reading"
        part["properties"][key] = {"description": "Retired: older records have it."}


def _with_defaults(schema: dict[str, Any]) -> None:
    """A file's [defaults] may hold any field of a claim or curve, so none of theirs is required by itself."""
    schema["properties"] |= {"defaults": _TABLE, "caveats": _TABLE, "cards": _TABLE}
    for name in ("Claim", "Curve"):
        del schema["$defs"][name]["required"]


def test_docs_have_the_schemas_that_the_models_give():
    generated = schemas()
    if os.environ.get("GPUDYNO_ACCEPT") == "1":
        for name, text in generated.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert sorted(written) == sorted(generated)
    stale = [name for name, text in generated.items() if json.loads(written[name]) != json.loads(text)]
    assert not stale, "GPUDYNO_ACCEPT=1 writes them anew"
