"""What page one leads with: one sentence, and three figures at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from report import text
from report.analysis import Analysis
from report.comparisons.cells import fewest_runs, standing
from report.comparisons.speedups import best_of_each_workload
from report.cost.costs import Costs
from report.sections.answer import headline
from report.sections.costs import wording
from report.sections.names import work
from report.sections.published import claims
from report.sections.view import Fact
from report.stats.intervals import Ranking


def lead(analysis: Analysis) -> str:
    """The sentence that page one begins with: of costs, else of two systems, else of published numbers."""
    bought = _bought(analysis)
    if bought:
        return bought
    if analysis.expectations:
        return headline.headline(analysis.expectations[0])
    if any(judged.compared for judged in analysis.verdicts) and analysis.groups:
        return claims.checked(analysis.verdicts)
    if analysis.own and not analysis.groups:
        failed = sum(trial.failure is not None for trial in analysis.own)
        return f"No trial of this session gave a figure to show: {failed:,} of {len(analysis.own):,} failed."
    return headline.answer(analysis.groups, analysis.speedups, len(analysis.evidence.claims.claims))


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
    share = first.hours[1] / second.hours[1]
    if costs.tied:
        quicker, less = (names[0], share) if share <= 1 else (names[1], 1 / share)
        time = f"{quicker} finishes in {text.percent(less)} of the time"
        if costs.alike_in_time:
            time = "no difference in speed is shown"
        opening = f"At your prices both cost about the same for your work; {time}."
    else:
        more = text.about(ratio[1], ratio[0], ratio[2])
        why = _reason(costs, names, share) or f"{names[1]} costs {more} times as much"
        opening = f"At your prices {names[0]} costs least for your work: {why}."
    if turn is None or turn[1] <= 0:
        return opening
    rented = costs.numbers.cards[costs.pair[0]].rented
    unit = f"{purchase.currency} an hour" if rented else purchase.currency
    price = wording.about_price(turn, unit)
    return f"{opening} {'Rent' if rented else 'Buy'} {names[0]} below {price}."


def _reason(costs: Costs, names: Sequence[str], share: float) -> str:
    """Why the first costs least: by price and its `share` of the second's time; empty where neither tells."""
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
    found = [*_cost_facts(analysis), *_speed_facts(analysis), *_own_facts(analysis)]
    return tuple(found[:3])


def _cost_facts(analysis: Analysis) -> Iterator[Fact]:
    costs, purchase = analysis.costs, analysis.evidence.purchase
    if costs is None or costs.answer is None or purchase is None or not costs.answer.order:
        return
    first = costs.answer.order[0]
    a_year = costs.answer.cards[first].cost
    name = text.the(costs.inputs.offers[first].name)
    place = "and about as much on the next" if costs.tied else "the least"
    next_cost = costs.answer.cards[costs.pair[1]].cost if costs.pair else None
    if next_cost is not None and costs.pair:
        other = text.the(costs.inputs.offers[costs.pair[1]].name)
        place = f"{text.about(next_cost[1], next_cost[0], next_cost[2])} with {other}"
    if a_year is not None:
        yield Fact(
            f"{text.about(a_year[1], a_year[0], a_year[2])} {purchase.currency}",
            f"a year for your work with {name}, {place}",
        )
    turn = costs.answer.cards[first].break_even
    if turn is not None and turn[1] > 0:
        price, _, between = wording.about_price(turn, purchase.currency).partition(" (")
        yield Fact(price, f"the price below which {name} costs least{f' ({between}' if between else ''}")


def _speed_facts(analysis: Analysis) -> Iterator[Fact]:
    if not analysis.expectations:
        return
    first = analysis.expectations[0]
    if first.model is not None and first.ranking is Ranking.TIED:
        yield Fact(
            "no difference",
            f"in speed is shown between {text.the(first.fast.name)} and {text.the(first.slow.name)}",
        )
    if first.model is not None and first.ranking is Ranking.RANKED:
        best = text.about(first.best, first.model.low, first.model.high)
        yield Fact(
            f"{best} ×",
            f"the speed of {text.the(first.fast.name)} against {text.the(first.slow.name)}; "
            f"{headline.other_units(first)}: {headline.between(first.model)}",
        )


def _own_facts(analysis: Analysis) -> Iterator[Fact]:
    cells = analysis.measured_here
    compared = [judged for judged in analysis.verdicts if judged.compared]
    if compared:
        hold = sum(judged.verdict.word in claims.HOLDS for judged in compared)
        yield Fact(f"{hold} of {len(compared)}", "of the published claims that can be checked here hold")
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
    fewest = fewest_runs(cells)
    yield Fact(
        text.count(fewest, "run"), f"{'is' if fewest == 1 else 'are'} the fewest that a figure averages"
    )
