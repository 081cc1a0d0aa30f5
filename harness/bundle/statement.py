"""What a bundle states: in-toto's Statement, version 1, over each of its files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from harness.record import Harness, Model, Summary
from harness.record.result import SessionId
from harness.record.strict_model import Moment

LAYOUT = 5
"""The number of the layout: which files a bundle has, and what they hold."""


class FileDigest(Model):
    """The SHA-256 of a file, in hex."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Resource(Model):
    """A file by its name in a clone."""

    name: str
    digest: FileDigest


class Predicate(Model):
    """What is stated of the files."""

    gpudyno: Harness
    """Which version and commit packed them."""
    machine: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
    """The machine of the leading session."""
    session: SessionId
    """The session whose figures a delivered machine must reach."""
    as_of: Moment
    """The end of the newest trial."""
    margin: Annotated[float, Field(gt=0, lt=1)]
    """How far below a figure of the leading session a delivered machine may be."""
    order: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The buyer's own word for the order."""
    sources: tuple[Resource, ...]
    """The claims, cards and tables of the clone that packed it; each clone reads its own."""
    figures: dict[str, Summary]
    """By the path of each record with a measurement, what its raw samples give."""


class Statement(Model):
    """https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md"""

    form: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")] = (
        "https://in-toto.io/Statement/v1"
    )
    subject: tuple[Resource, ...]
    """Every file of the bundle but the statement and its time stamp."""
    predicate_type: Annotated[Literal["urn:gpudyno:bundle:5"], Field(alias="predicateType")] = (
        "urn:gpudyno:bundle:5"
    )
    predicate: Predicate


def resources(files: Mapping[str, bytes]) -> tuple[Resource, ...]:
    """Return each file's name and digest, in the order of the names."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    return tuple(Resource(name=name, digest=FileDigest(sha256=sha256)) for name, sha256 in digests.items())


def json_bytes(model: Model) -> bytes:
    """Return the one way in which a statement and its envelope are written."""
    fields = model.model_dump(mode="json", by_alias=True)
    return (json.dumps(fields, indent=1, ensure_ascii=False) + "\n").encode()
