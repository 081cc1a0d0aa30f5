"""Who else measured the same, and what no reading of records can show."""

from __future__ import annotations

from collections.abc import Sequence

from report.comparisons.cells import Ratio
from report.comparisons.units.reruns import Rerun
from report.sections import names
from report.sections.view import Table
from report.text import between, clean, count, model_name, number, times

MOST_ROWS = 40

WHAT_READING_SHOWS = (
    "Records that were made up to agree with themselves cannot be told from measured ones by reading. "
    "A signed bundle would say who answers for them. A second witness, such as the host's own log, would "
    "have to be made up as well. A run by someone else shows whether they hold."
)


def table(reruns: Sequence[Rerun]) -> Table | None:
    """A row for each work that another machine measured too; null where none did."""
    if not reruns:
        return None
    caption = (
        "Also measured by others: the same work with the same stack on another machine's card of the name."
    )
    if len(reruns) > MOST_ROWS:
        caption += f" {len(reruns) - MOST_ROWS} more are not listed."
    unit = reruns[0].own.trials[0].sample_unit
    columns = ("Work", f"{unit.capitalize()}s / s here", "Also measured by", "Theirs", "Theirs over ours")
    return Table(caption, columns, tuple(map(_row, reruns[:MOST_ROWS])))


def _row(rerun: Rerun) -> tuple[str, ...]:
    own, other = rerun.own, rerun.other
    key = own.key
    same = "\nthe same unit of the card" if rerun.of_the_same_unit else ""
    how = f"{key.precision}, batch {key.batch_size}, {key.data_mode}"
    return (
        f"{model_name(key.model)}{names.setting(key)}\n{how}",
        f"{number(own.throughput.mean)}\n{count(own.throughput.n, 'run')}",
        f"{clean(other.machine_label, 40)} ({other.machine[:4]})\nsession {other.session}{same}",
        f"{number(other.throughput.mean)}\n{count(other.throughput.n, 'run')}",
        _ratio(rerun.ratio),
    )


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return "–"
    return f"{times(ratio.estimate)}\n{between(ratio.interval, 'times')}"
