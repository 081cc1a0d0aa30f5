"""What files of earlier gpudyno have that today's have not: a file is never refused for its age.

From `record` 2 and `session` 1 on each number that a file may begin with has a reader here, of at most 40
lines, that is tested on a committed file of it.
"""

from __future__ import annotations

from typing import Any

RETIRED = (("summary", "method"), ("measurement", "anchors"), ("failure", "log_tail"))
"""Keys that records 2 had at first: nothing is worked out from them."""


def drop_retired(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON of a record 2 without the keys that none has any more."""
    kept = dict(raw)
    for part, key in RETIRED:
        if isinstance(kept.get(part), dict):
            kept[part] = {name: value for name, value in kept[part].items() if name != key}
    return kept
