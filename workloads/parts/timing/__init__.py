"""How a trial's steps are timed, on the host and on the device."""
