"""The bundle's description as an RO-Crate of the Process Run Crate profile 0.5: every trial is an action.

Nobody is named in it: it has nothing that a record lacks, so actions have no agent.
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
    ".jsonl": "application/jsonl",
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
    entities: dict[str, Entity] = {}
    actions = [_action(stored, files, locks, entities) for stored in records]
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
        *(entities[name] for name in sorted(entities)),
        *actions,
    ]
    return json.dumps({"@context": list(_CONTEXT), "@graph": graph}, indent=1, ensure_ascii=False) + "\n"


def _file(name: str, size: int) -> Entity:
    entity: Entity = {"@id": name, "@type": "File", "name": name.rpartition("/")[2], "contentSize": str(size)}
    ending = "." + name.rpartition(".")[2]
    return {**entity, "encodingFormat": _FORMATS[ending]} if ending in _FORMATS else entity


def _action(
    stored: Stored, files: Mapping[str, int], locks: Mapping[str, str], entities: dict[str, Entity]
) -> Entity:
    record = stored.record
    environment = record.environment
    used = (f"plans/{record.plan}.toml", locks.get(environment.lock_sha256 or "", ""))
    failure = record.failure
    action: Entity = {
        "@id": f"#trial-{record.session}-{record.trial.id}-a{record.attempt}",
        "@type": "CreateAction",
        "name": f"{record.trial.id}, attempt {record.attempt}, session {record.session}",
        "instrument": {"@id": _workload(record.trial, entities)},
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
    if variables := _variables(environment.passed_variables.items(), entities):
        action["environment"] = variables
    if environment.image_id is not None:
        action["containerImage"] = {"@id": _image(environment, entities)}
    return action


def _workload(trial: Trial, entities: dict[str, Entity]) -> str:
    request = trial.asked
    number = request.protocol.replace("/", "-")
    name = f"#workload-{request.workload}-{number}"
    entities[name] = {
        "@id": name,
        "@type": "SoftwareApplication",
        "name": f"{request.workload}, protocol {request.protocol}",
        "softwareVersion": request.protocol.rpartition("/")[2],
    }
    return name


def _variables(pairs: Iterable[tuple[str, str]], entities: dict[str, Entity]) -> list[Entity]:
    named = []
    for variable, value in sorted(pairs):
        name = f"#variable-{variable}-{short_hash(value)}"
        entities[name] = {"@id": name, "@type": "PropertyValue", "name": variable, "value": value}
        named.append({"@id": name})
    return named


def _image(environment: Environment, entities: dict[str, Entity]) -> str:
    """Its sha256 is the image's own id; a registry is not named, since the image was built where it ran."""
    digest = (environment.image_id or "").removeprefix("sha256:")
    name = f"#image-{digest[:12]}"
    repository, _, tag = (environment.tag or environment.image).partition(":")
    entities[name] = {
        "@id": name,
        "@type": "ContainerImage",
        "additionalType": {"@id": "https://w3id.org/ro/terms/workflow-run#DockerImage"},
        "name": repository,
        **({"tag": tag} if tag else {}),
        "sha256": digest,
    }
    return name
