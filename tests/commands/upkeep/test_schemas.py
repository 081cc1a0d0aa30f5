"""The published schemas against the models, and against the files that stand in the project."""

from __future__ import annotations

import json
import os
import tomllib
from typing import Any

import pytest

from commands.upkeep.schemas import schemas
from tests.helpers import ROOT

FOLDER = ROOT / "docs" / "schema"


def test_docs_have_the_schemas_that_the_models_give():
    generated = schemas()
    if os.environ.get("GPUDYNO_ACCEPT") == "1":
        for name, text in generated.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert sorted(written) == sorted(generated)
    stale = [name for name, text in generated.items() if json.loads(written[name]) != json.loads(text)]
    assert not stale, "GPUDYNO_ACCEPT=1 writes them anew"


def keys(schema: dict[str, Any], definition: dict[str, Any]) -> tuple[set[str], set[str]]:
    """The keys that a definition knows, and those that it requires."""
    if "$ref" in definition:
        definition = schema["$defs"][definition["$ref"].rpartition("/")[2]]
    return set(definition["properties"]), set(definition.get("required", ()))


@pytest.mark.parametrize("path", sorted((ROOT / "plans").glob("*.toml")), ids=lambda path: path.stem)
def test_a_plan_has_the_keys_of_its_schema(path):
    schema, plan = json.loads(schemas()["plan.schema.json"]), tomllib.loads(path.read_text())
    known, required = keys(schema, schema)
    assert required <= set(plan) <= known
    of_size = keys(schema, schema["$defs"]["Size"])
    of_measure = keys(schema, schema["properties"]["measure"]["items"])
    for size in plan.get("size", {}).values():
        assert of_size[1] <= set(size) <= of_size[0]
    for part in (plan, *plan.get("size", {}).values()):
        for measure in part["measure"]:
            assert of_measure[1] <= set(measure) <= of_measure[0]


def test_the_image_list_has_the_keys_of_its_schema():
    schema = json.loads(schemas()["images.schema.json"])
    known, required = keys(schema, schema["properties"]["images"]["additionalProperties"])
    images = tomllib.loads((ROOT / "docker" / "images.toml").read_text())["images"]
    for image in images.values():
        assert required <= set(image) <= known


@pytest.mark.parametrize("path", sorted((ROOT / "results/claims").glob("*.toml")), ids=lambda path: path.stem)
def test_a_claim_file_has_the_keys_of_its_schema(path):
    schema, file = json.loads(schemas()["claims.schema.json"]), tomllib.loads(path.read_text())
    assert set(file) <= keys(schema, schema)[0]
    for part in ("claims", "curves"):
        known, required = keys(schema, schema["properties"][part]["items"])
        for entry in file.get(part, []):
            assert required <= set(entry) <= known
