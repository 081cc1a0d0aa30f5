"""Prints this machine's fingerprint as JSON, without raw UUIDs."""

from __future__ import annotations

import json
import sys

from harness.probe.describe import everything

fields = everything()
for card in fields["gpus"]:
    card.pop("uuid", None)
    card.pop("bus", None)
json.dump(fields, sys.stdout, indent=1)
sys.stdout.write("\n")
