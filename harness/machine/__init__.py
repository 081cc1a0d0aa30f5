"""The machine that trials run on: what it is, what else it does, which devices are taken, its names."""

from harness.machine.devices import (
    INHERITED,
    VISIBILITY,
    Selection,
    inherited_variables,
    other_libraries,
    passed_variables,
    recorded_variables,
    select,
)
from harness.machine.fingerprint import (
    default_label,
    local_names,
    look,
    machine_from,
    machine_id,
    own_folder,
    user_state_folder,
)
from harness.machine.load import load
