"""One of each chart, with long names and hostile texts."""

from __future__ import annotations

import pytest

from report.charts.costs import CardCost, CostAgainstTime, Input, OfferPrice, PriceLine, Tornado
from report.charts.drawing import Chart
from report.charts.intervals import GroupedIntervals, Intervals, Mark, Share, Shares
from report.charts.lines import Curve, Curves, Wall
from report.charts.roofline import Bandwidth, Roof, Roofline, RooflineMark
from report.charts.rows import MarkRow, MarkRows
from report.charts.style import DESK, NARROW
from report.charts.trial import Quantity, StepTimes, Timelines, TrialTimeline
from report.charts.utilization import DeviceUse, Phase, UseRow, UseRows
from tests.helpers import records_hostile

LONG_CARD = "Constructed Card B with a very long name 80GB HBM3"
MATH = r"$\frac{1}{0}$ and $unfinished"
HOSTILE = (
    records_hostile.SCRIPT,
    records_hostile.BREAKOUT,
    records_hostile.RIGHT_TO_LEFT,
    records_hostile.LONG,
    MATH,
    "\x00\x1b[31m\ud800",
    "显卡 ‮",
    "",
)
MARKS = (
    Mark(
        "fp32-ieee",
        "batch 98 · 3 runs",
        "4,578 s",
        4578.0,
        4400.0,
        4700.0,
        (4500.0, 4578.0, 4650.0),
        (5000.0,),
    ),
    Mark(
        f"{LONG_CARD} amp-fp16",
        "batch 164 · 3 runs · projected · unproven · 2026-01-30 · somewhere else",
        "2,227 s",
        2227.0,
        2100.0,
        2300.0,
        precision="amp-fp16",
        card="b",
        unranked=True,
        other_units=(2000.0, 2500.0),
    ),
    Mark("pure-fp16", "study 004", "1,900 s", 1900.0, precision="pure-fp16", published=True),
    Mark("fp32-tf32", "1 trial", "does not fit", None, precision="fp32-tf32", card="a"),
)
RATIO_MARKS = tuple(
    Mark(mark.label, mark.note, "1.23, tied", ratio, ratio * 0.9, ratio * 1.1, precision=mark.precision)
    for mark, ratio in zip(MARKS, (1.0, 1.62, 0.4, 2.5), strict=True)
)
BY_BATCH = Curves(
    (
        Curve("fp32-ieee", ((16.0, 1200.0), (32.0, 2000.0)), intervals=((1100.0, 1300.0), None), marked=True),
        Curve("amp-fp16", ((16.0, 1500.0), (64.0, 4100.0)), "amp-fp16", marked=True),
    ),
    "batch",
    zero=True,
    doubling=True,
    walls=(Wall(64.0, "64 does not fit", "fp32-ieee"), Wall(128.0, "128 does not fit", "amp-fp16")),
)
TRIAL = TrialTimeline(
    False,
    StepTimes((0.3, 0.2, 0.2, 0.21), 100, 100, (100,)),
    (0.0, 20.0, 40.0),
    ((5.0, 35.0),),
    (
        Quantity("clock", "MHz", (1200.0, None, 1350.0)),
        Quantity("at work", "%", (10.0, 98.0, 97.0), 0.0, 100.0),
    ),
    ((0, 65536.0), (120, 32768.0)),
)
USE = UseRow(
    f"{LONG_CARD} (DistributedDataParallel)",
    "GPU 0 did 31 % of the work of four",
    (0.0, 20.0, 40.0),
    (
        DeviceUse("GPU 0", (2.0, None, 98.0), (0.5, 10.0, 10.0)),
        DeviceUse("GPU 1", (2.0, 70.0, 71.0), (0.5, None, None)),
    ),
    (
        Phase("setup", "setup", 0.0, 3.0),
        Phase("compiling", "first step: compiles, autotunes", 3.0, 19.0),
        Phase("training", "training, synthetic data", 19.0, 40.0),
        Phase("test", "test", 40.0, 40.001),
    ),
)
COSTS = (CardCost("Card A: 12 (11 to 14) EUR", (40.0, 50.0, 55.0), (11.0, 12.0, 14.0)),) * 3
CHARTS: dict[str, Chart] = {
    "intervals": Intervals(MARKS),
    "ratios": Intervals(RATIO_MARKS, "times", ratio=True),
    "grouped": GroupedIntervals(
        (("ResNet-50", RATIO_MARKS), ("EfficientNet-B0", RATIO_MARKS[:2])), (0.3, 3.0)
    ),
    "rows": MarkRows(
        (MarkRow("ResNet-50", RATIO_MARKS, RATIO_MARKS[:1]), MarkRow(LONG_CARD * 3, RATIO_MARKS[2:])),
        "not in one row with these: what differs is in brackets",
    ),
    "shares": Shares(
        (Share(f"{LONG_CARD} fp32-ieee", "", "fp32-ieee", (("compute", 0.93), ("other", 0.07))),)
    ),
    "by batch": BY_BATCH,
    "crowded": Curves(
        tuple(Curve(f"{LONG_CARD} {n}", ((1.0, 0.7), (30.0, 0.9 + n / 1000))) for n in range(4)),
        "epoch",
        "percent",
    ),
    "close": Curves(
        tuple(Curve(f"line {n}", ((0.0, 0.5), (1500.0, 0.9))) for n in range(5)), "step", "number"
    ),
    "roofline": Roofline(
        (RooflineMark("ResNet-50, batch 64, cached data", "amp-bf16", 990.0, 4e14),),
        (
            Roof("fp32-ieee, on paper", "fp32-ieee", 67e12, False),
            Roof("bf16, measured", "pure-bf16", 7e14, True),
        ),
        (Bandwidth(2.8e12, True), Bandwidth(3.3e12, False)),
    ),
    "costs": CostAgainstTime(COSTS, "hours a year", "cost, EUR"),
    "sensitivity": Tornado(1.4, (Input(f"price, {LONG_CARD}, 2,000 to 3,000 EUR", 0.9, 1.8),) * 3),
    "price line": PriceLine(
        (f"the {LONG_CARD} costs less", "B does"),
        "no difference is shown",
        (
            OfferPrice(f"{LONG_CARD}: 2,000 EUR", (1e3, 2e3, 3e3), 0, (3e3, 4e3, 5e3), "costs less below"),
            OfferPrice("B", (1e5,) * 3, 1, (-2e3, -1e3, 1e3), "costs less at no price"),
            OfferPrice("C", (1e4,) * 3, 2),
        ),
        "price, EUR",
    ),
    "timelines": Timelines((TRIAL, TRIAL), "a", "amp-fp16"),
    "use": UseRows((USE, USE)),
    "nothing": Curves((), "epoch"),
}
EACH_CHART = pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
BOTH_LAYOUTS = pytest.mark.parametrize("layout", [DESK, NARROW], ids=["desk", "narrow"])
