"""What page one leads with: one sentence, and three figures at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from report import text
from report.analysis import Analysis
from report.comparisons.cells import Cell, runs_of_figures, standing
from report.comparisons.speedups import best_of_each_workload
from report.cost.costs import Costs
from report.sections.answer import headline
from report.sections.costs import wording
from report.sections.names import work
from report.sections.published import claims, leading
from report.sections.view import Fact
from report.sections.workloads.frameworks import section as frameworks
from report.stats.intervals import Ranking

BUSY = "busy-machine"
"""The cause that a trial bears which began while the machine did other work."""


Subject = Literal["costs", "verdicts", "pair", "frameworks", "own"]


def subject(analysis: Analysis) -> Subject:
    """What page one is about: costs, else published numbers, else two systems, else what ran here."""
    if _bought(analysis):
        return "costs"
    if _researches(analysis):
        return "verdicts"
    if analysis.expectations and analysis.expectations[0].units is not None:
        return "pair"
    return "frameworks" if frameworks.leading(analysis) else "own"


def lead(analysis: Analysis) -> str:
    """The sentence that page one begins with."""
    about = subject(analysis)
    if about == "costs":
        return _bought(analysis)
    if about == "verdicts":
        return claims.checked(analysis.verdicts, analysis.question.ways)
    if about == "pair":
        return headline.headline(analysis.expectations[0])
    ranks = frameworks.leading(analysis)
    if ranks is not None:
        return frameworks.brief(ranks)
    if analysis.own and not analysis.groups:
        failed = sum(trial.failure is not None for trial in analysis.own)
        return f"No trial of this session gave a figure to show: {failed:,} of {len(analysis.own):,} failed."
    return headline.answer(analysis.groups, analysis.speedups, len(analysis.evidence.claims.claims))


def leading_cells(analysis: Analysis) -> list[Cell]:
    """What the first sentence stands on: the work of a pair, else the leading session and what leads."""
    about, ranks = subject(analysis), frameworks.leading(analysis)
    named: list[Cell] = []
    if about in ("costs", "pair") and analysis.expectations:
        return list(analysis.expectations[0].cells)
    if about == "verdicts":
        named = [cell for judged in analysis.verdicts for cell in judged.cells]
    if about == "frameworks" and ranks is not None:
        named = [line.cell for line in ranks.ranked]
    taken = set(map(id, named))
    return [cell for cell in analysis.grouped if id(cell) in taken or cell.session == analysis.lead]


def _researches(analysis: Analysis) -> bool:
    """Whether there are verdicts on published numbers, and no prices."""
    judged = any(judged.compared for judged in analysis.verdicts)
    return judged and bool(analysis.groups) and analysis.evidence.purchase is None


def _bought(analysis: Analysis) -> str:
    """Which to buy at the prices given; empty where fewer than two are priced."""
    costs, purchase = analysis.costs, analysis.evidence.purchase
    if costs is None or costs.answer is None or purchase is None or costs.pair is None:
        return ""
    first, second = (costs.answer.cards[place] for place in costs.pair)
    names = [text.the(costs.inputs.offers[place].name) for place in costs.pair]
    ratio, turn = second.ratio, first.break_even
    if ratio is None or first.hours is None or second.hours is None:
        return ""
    share, work = first.hours[1] / second.hours[1], "" if costs.idle_turns else " for your work"
    if costs.tied:
        quicker, less = (names[0], share) if share <= 1 else (names[1], 1 / share)
        time = f"{quicker} finishes in {text.percent(less)} of the time"
        if costs.alike_in_time:
            time = "no difference in speed is shown"
        opening = f"both cost about the same{work}; {time}"
    else:
        more = text.about(ratio[1], ratio[0], ratio[2])
        why = _reason(costs, names, share) or f"{names[1]} costs {more} times as much"
        opening = f"{names[0]} costs {wording.less_or_least(costs.answer)}{work}: {why}"
    if costs.idle_turns:
        least = names[costs.cheaper_idle or 0]
        return f"Shared with other work, {opening}. Used for your work alone, {least} costs less."
    if turn is None or turn[1] <= 0:
        return f"At your prices {opening}."
    card = costs.numbers.cards[costs.pair[0]]
    unit = wording.price_unit(purchase.currency, card)
    buy = f"{'Rent' if card.rented else 'Buy'} {names[0]} below {wording.about_price(turn, unit)}"
    return f"At your prices {opening}. {buy}."


def _reason(costs: Costs, names: Sequence[str], share: float) -> str:
    """Why the first costs less: by price and its `share` of the second's time; empty where neither tells."""
    assert costs.pair is not None
    first, second = (costs.inputs.offers[place].quote for place in costs.pair)
    if first is None or second is None or first.rented != second.rented:
        return ""
    cheaper, act = first.cost[1] < second.cost[1], "rent" if first.rented else "buy"
    if costs.alike_in_time:
        return f"it is cheaper to {act} than {names[1]}, with no difference in speed shown" if cheaper else ""
    if share < 1:
        price = "is cheaper" if cheaper else "is dearer"
        link = "and" if cheaper else "but"
        return f"it {price} to {act} than {names[1]}, {link} finishes in {text.percent(share)} of the time"
    if cheaper:
        return f"{names[1]} finishes in {text.percent(1 / share)} of the time, but is dearer to {act}"
    return ""


def facts(analysis: Analysis) -> tuple[Fact, ...]:
    """The figures that page one leads with, three at most."""
    if not analysis.groups:
        return ()
    about, ranks = subject(analysis), frameworks.leading(analysis)
    found = [*_cost_facts(analysis)]
    found += _research_facts(analysis) if about == "verdicts" else ()
    found += _speed_facts(analysis)
    found += frameworks.brief_facts(ranks) if about == "frameworks" and ranks is not None else ()
    return tuple([*found, *_own_facts(analysis)][:3])


def _cost_facts(analysis: Analysis) -> Iterator[Fact]:
    costs, purchase = analysis.costs, analysis.evidence.purchase
    if costs is None or costs.answer is None or purchase is None or not costs.answer.order:
        return
    first = costs.answer.order[0]
    a_year = costs.answer.cards[first].cost
    name = text.the(costs.inputs.offers[first].name)
    next_cost = costs.answer.cards[costs.pair[1]].cost if costs.pair else None
    against, shared = "", ", if shared with other work" if costs.idle_turns else ""
    if next_cost is not None and costs.pair:
        against = f", {text.number(next_cost[1])} with {text.the(costs.inputs.offers[costs.pair[1]].name)}"
    if a_year is not None:
        yield Fact(
            f"{text.number(a_year[1])} {purchase.currency}",
            f"a year for your work with {name}{against}{shared}",
        )
    turn = costs.answer.cards[first].break_even
    if turn is not None and turn[1] > 0:
        unit = wording.price_unit(purchase.currency, costs.numbers.cards[first])
        price, _, between = wording.about_price(turn, unit).partition(" (")
        span = f" ({between}" if between else ""
        both = "both cost the same" if len(costs.answer.order) == 2 else "another costs as little"
        yield Fact(price, f"the price of {name} at which {both}{span}{shared}")


def _speed_facts(analysis: Analysis) -> Iterator[Fact]:
    if not analysis.expectations:
        return
    first = analysis.expectations[0]
    if first.model is not None and first.ranking is Ranking.TIED:
        yield Fact(
            "no difference",
            f"in speed is shown between {text.the(first.fast.name)} and {text.the(first.slow.name)}",
        )
    if first.units is not None and first.model is not None and first.ranking is Ranking.RANKED:
        best = text.about(first.best, first.units.low, first.units.high)
        yield Fact(
            f"{best} ×",
            f"the speed of {text.the(first.fast.name)} against {text.the(first.slow.name)}; "
            f"{headline.other_units(first)}: {headline.between(first.model)}",
        )


def _research_facts(analysis: Analysis) -> Iterator[Fact]:
    """What holds of what was judged, the speed beside the nearest published one, and how quiet it was."""
    compared = [judged for judged in analysis.verdicts if judged.compared]
    hold = sum(judged.verdict.word in claims.HOLDS for judged in compared)
    fail = sum(judged.verdict.word in claims.FAILS for judged in compared)
    others = f"; {fail} {'does' if fail == 1 else 'do'} not" if fail else ""
    others += f", {open_} open" if (open_ := len(compared) - hold - fail) else ""
    yield Fact(f"{hold} of {len(compared)}", f"published claims that these runs judge hold{others}")
    nearest = leading.nearest_speed(analysis)
    if nearest is not None:
        yield nearest
    shown = [trial for cell in analysis.measured_here for trial in cell.trials]
    known = [trial for trial in shown if trial.record.load.busy_cpus is not None]
    if known:
        busy = sum(any(found.name == BUSY for found in trial.causes) for trial in known)
        yield Fact(f"{len(known) - busy} of {len(known)}", "trials that began on a quiet machine")


def _own_facts(analysis: Analysis) -> Iterator[Fact]:
    cells = analysis.measured_here
    own = [gain for gain in analysis.speedups if any(gain.of is cell for cell in cells)]
    ranked = [gain for gain in best_of_each_workload(own) if gain.ranking is Ranking.RANKED]
    if ranked:
        most = max(ranked, key=lambda gain: gain.ratio.estimate)
        interval = most.ratio.interval
        assert interval is not None
        yield Fact(
            f"{text.about_times(most.ratio.estimate, interval.low, interval.high)} ×",
            f"the speed of {work(most.of, cells)} against {most.over.key.precision}",
        )
    rated = [cell for cell in cells if cell.throughput.mean is not None]
    if rated:
        cell = rated[0]
        unit = text.clean(cell.trials[0].sample_unit, 20)
        yield Fact(
            f"{text.number(cell.throughput.mean)} {unit}s/s",
            f"{work(cell, cells)}, {standing(cell) or 'measured'}",
        )
    counts = runs_of_figures(cells)
    fewest, highest = min(counts, default=0), max(counts, default=0)
    runs = text.count(fewest, "run") if fewest == highest else f"{fewest} to {highest} runs"
    yield Fact(runs, "behind each figure")
