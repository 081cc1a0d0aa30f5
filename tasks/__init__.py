"""The verbs: parse, call, print. `invoke --list` shows them, `invoke --help VERB` explains one.

An option of the first verb holds for the whole line: `invoke build --plan mission run report`.
"""

from tasks.buying import accept, bundle, quote, verify
from tasks.cluster import cancel, collect, status, submit
from tasks.measuring import build, data, doctor, pack, plan, run
from tasks.reading import claims, compare, report
from tasks.upkeep import check, clean, contribute, gate, lock, test

__all__ = [
    "accept",
    "build",
    "bundle",
    "cancel",
    "check",
    "claims",
    "clean",
    "collect",
    "compare",
    "contribute",
    "data",
    "doctor",
    "gate",
    "lock",
    "pack",
    "plan",
    "quote",
    "report",
    "run",
    "status",
    "submit",
    "test",
    "verify",
]
