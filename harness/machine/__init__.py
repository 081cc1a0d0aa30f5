"""The machine that trials run on: what it is, what else it does, which devices are taken, its names."""

from harness.machine.devices import VISIBILITY, Selection, passed_variables, recorded_variables, select
from harness.machine.fingerprint import (
    default_label,
    fingerprint,
    look,
    machine_from,
    machine_id,
    state_folder,
)
from harness.machine.load import load
from harness.machine.names import local_names

__all__ = [
    "VISIBILITY",
    "Selection",
    "default_label",
    "fingerprint",
    "load",
    "local_names",
    "look",
    "machine_from",
    "machine_id",
    "passed_variables",
    "recorded_variables",
    "select",
    "state_folder",
]
