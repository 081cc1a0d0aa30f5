"""The machine that trials run on: what it is, what else it does, which devices are taken, its names."""

from harness.machine.devices import (
    VISIBILITY,
    Selection,
    driver_uuids,
    passed_variables,
    recorded_variables,
    select,
)
from harness.machine.fingerprint import default_label, fingerprint, machine_from, machine_id, state_folder
from harness.machine.load import load
from harness.machine.names import local_names
from harness.record import differences

__all__ = [
    "VISIBILITY",
    "Selection",
    "default_label",
    "differences",
    "driver_uuids",
    "fingerprint",
    "load",
    "local_names",
    "machine_from",
    "machine_id",
    "passed_variables",
    "recorded_variables",
    "select",
    "state_folder",
]
