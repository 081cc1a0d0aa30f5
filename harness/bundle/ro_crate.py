"""The bundle's description as an RO-Crate of the Process Run Crate profile 0.5: every trial is an action.

Nobody is named in it: what a record does not know, its crate does not say, so actions have no agent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from harness.record import Environment, Trial, short_hash
from harness.record.store import Stored

FILE = "ro-crate-metadata.json"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
LICENSE = "https://creativecommons.org/publicdomain/zero/1.0/"

_CONTEXT = (
    "https://w3id.org/ro/crate/1.1/context",
    "https://w3id.org/ro/terms/workflow-run/context",
)
_FORMATS = {
    ".json": "application/json",
    ".toml": "application/toml",
    ".html": "text/html",
    ".md": "text/markdown",
    ".svg": "image/svg+xml",
}

Entity = dict[str, Any]


def describe(
    records: Sequence[Stored],
    files: Mapping[str, int],
    *,
    locks: Mapping[str, str],
    as_of: datetime,
    version: str,
) -> str:
    """ro-crate-metadata.json. `files` are names with their bytes, `locks` a lock's SHA-256 to its file."""
    found: dict[str, Entity] = {}
    actions = [_action(stored, files, locks, found) for stored in records]
    root: Entity = {
        "@id": "./",
        "@type": "Dataset",
        "name": "gpudyno bundle",
        "description": f"{len(records)} trials of training workloads, measured by gpudyno {version}, with "
        "the environments, plans and published figures that belong to them, and the page made of them.",
        "datePublished": as_of.isoformat(),
        "license": {"@id": LICENSE},
        "conformsTo": [{"@id": PROFILE}],
        "hasPart": [{"@id": name} for name in sorted(files)],
        "mentions": [{"@id": action["@id"]} for action in actions],
    }
    graph = [
        {
            "@id": FILE,
            "@type": "CreativeWork",
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
            "about": {"@id": "./"},
        },
        root,
        {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        {"@id": LICENSE, "@type": "CreativeWork", "name": "CC0 1.0 Universal"},
        *(_file(name, files[name]) for name in sorted(files)),
        *(found[name] for name in sorted(found)),
        *actions,
    ]
    return json.dumps({"@context": list(_CONTEXT), "@graph": graph}, indent=1, ensure_ascii=False) + "\n"


def _file(name: str, size: int) -> Entity:
    said: Entity = {"@id": name, "@type": "File", "name": name.rpartition("/")[2], "contentSize": str(size)}
    ending = "." + name.rpartition(".")[2]
    return {**said, "encodingFormat": _FORMATS[ending]} if ending in _FORMATS else said


def _action(
    stored: Stored, files: Mapping[str, int], locks: Mapping[str, str], found: dict[str, Entity]
) -> Entity:
    record = stored.record
    environment = record.environment
    used = (f"plans/{record.plan}.toml", locks.get(environment.lock_sha256 or "", ""))
    failure = record.failure
    action: Entity = {
        "@id": f"#trial-{record.session}-{record.trial.id}-a{record.attempt}",
        "@type": "CreateAction",
        "name": f"{record.trial.id}, attempt {record.attempt}, session {record.session}",
        "instrument": {"@id": _workload(record.trial, found)},
        "object": [{"@id": name} for name in used if name in files],
        "result": [{"@id": stored.path}],
        "startTime": record.started_at.isoformat(),
        "endTime": (record.started_at + timedelta(seconds=record.wall_seconds)).isoformat(),
        "actionStatus": {
            "@id": f"http://schema.org/{'FailedActionStatus' if failure else 'CompletedActionStatus'}"
        },
    }
    if failure is not None:
        action["error"] = f"{failure.stage}: {failure.reason}: {failure.message}"
    if variables := _variables(environment.passed_variables.items(), found):
        action["environment"] = variables
    if environment.image_id is not None:
        action["containerImage"] = {"@id": _image(environment, found)}
    return action


def _workload(trial: Trial, found: dict[str, Entity]) -> str:
    asked = trial.asked
    number = asked.protocol.replace("/", "-")
    name = f"#workload-{asked.workload}-{number}"
    found[name] = {
        "@id": name,
        "@type": "SoftwareApplication",
        "name": f"{asked.workload}, protocol {asked.protocol}",
        "softwareVersion": asked.protocol.rpartition("/")[2],
    }
    return name


def _variables(pairs: Iterable[tuple[str, str]], found: dict[str, Entity]) -> list[Entity]:
    named = []
    for variable, value in sorted(pairs):
        name = f"#variable-{variable}-{short_hash(value)}"
        found[name] = {"@id": name, "@type": "PropertyValue", "name": variable, "value": value}
        named.append({"@id": name})
    return named


def _image(environment: Environment, found: dict[str, Entity]) -> str:
    """Its sha256 is the image's own id; a registry is not named, since the image was built where it ran."""
    digest = (environment.image_id or "").removeprefix("sha256:")
    name = f"#image-{digest[:12]}"
    repository, _, tag = (environment.tag or environment.image).partition(":")
    found[name] = {
        "@id": name,
        "@type": "ContainerImage",
        "additionalType": {"@id": "https://w3id.org/ro/terms/workflow-run#DockerImage"},
        "name": repository,
        **({"tag": tag} if tag else {}),
        "sha256": digest,
    }
    return name
