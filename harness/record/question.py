"""What is asked of measurements: by a plan, which its sessions keep, or by a line."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from harness.record.strict_model import Model

QuestionKind = Literal["faster", "reach", "holds", "sound", "cost", "limits"]
Factor = Literal[
    "machine", "unit", "precision", "framework", "stack", "gpus", "batch", "loader", "model", "side"
]


class Question(Model):
    """One of six questions.

    `faster`: which side, by one factor; `reach`: how soon a quality; `holds`: whether published figures do;
    `sound`: whether a card is as it should be; `cost`: which offer; `limits`: what a device does at most.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    kind: Annotated[QuestionKind, Field(alias="is")]
    by: Annotated[Factor | None, Field(exclude_if=lambda by: by is None)] = None
    """The one field in which the sides of `faster` differ; null where nothing was varied."""

    @model_validator(mode="after")
    def _by_belongs_to_faster(self) -> Self:
        if self.by is not None and self.kind != "faster":
            raise ValueError(f"'by' goes with is = 'faster', and this is '{self.kind}'")
        return self


def question_words(given: object) -> object:
    """Return `faster by precision` as the fields of a question, and all that is no text as it is."""
    if not isinstance(given, str):
        return given
    kind, _, by = given.strip().partition(" by ")
    return {"is": kind.strip()} | ({"by": by.strip()} if by else {})
