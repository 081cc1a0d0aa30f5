"""The machine that trials run on: what it is, what else it does, which devices are taken, its names."""

from harness.machine.devices import (
    INHERITED,
    VISIBILITY,
    Selection,
    inherited_variables,
    other_libraries,
    passed_variables,
    recorded_variables,
    select_devices,
)
from harness.machine.fingerprint import (
    default_label,
    local_names,
    look_at_machine,
    machine_folder,
    machine_id,
    make_machine,
    read_load,
    user_state_folder,
)
