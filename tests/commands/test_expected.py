"""A work whose program has a table stands against what others published. All records here are constructed."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from commands import report
from commands.expect import _table_programs, expect_cards
from commands.report import ReportOptions, write_report
from harness.errors import UserError
from harness.plan import own_file
from harness.record import Epoch, PrecisionFound, Series, Window
from harness.record.measurement import ProgramRun
from harness.record.published.cards import load_cards
from harness.record.store import read_results
from harness.summary.statistics import judge_trial
from report.analysis import AnalysisRequest, analyse, evidence_in
from report.expected.expected import kept
from report.expected.figures import RATES, TIMES, table_row
from report.page.whole_page import page_of
from tests.helpers import ROOT, copied
from tests.helpers.records_builder import STARTED, machine, measurement, record, trial, write

SESSION, STEPS = "20260131-aaaaaa", 340
CARD = "NVIDIA H100 80GB HBM3"
KIND = {"protocol": "gpu-insights/1", "quality": "loss", "unit": "image", "steps_per_epoch": 340}
KIND |= {"epochs": 1, "valid_batches": 0, "workload": "program", "model": "resnet50", "image_size": 32}
PURCHASE = """\
currency = "EUR"
life_years = 4
electricity_price = 0.25
hours_on = "H100 80GB HBM3"
[[offer]]
card = "H100 80GB HBM3"
price = 30000
date = 2026-01-05
source = "constructed"
[[offer]]
card = "RTX PRO 6000 Blackwell WS"
price = 9000
date = 2026-01-05
source = "constructed"
[[work]]
workload = "program"
model = "resnet50"
hours_per_year = 4380
"""


def program(name):
    path = ROOT / "workloads" / "programs" / f"{name}.toml"
    return own_file.read_program(path.read_bytes(), path.name)


def command_of(ran, asked):
    names = {**asked.variant.model_dump(), **ran.options, **asked.variant.options}
    return tuple(re.sub(r"\{(\w+)\}", lambda each: str(names[each[1]]), word) for word in ran.command)


def constructed(rate, *, card=CARD, name="gpu-insights", batch=256, **variant):
    """Three runs of a program on a card that was never there, at so many images a second."""
    ran, found = program(name), []
    for repeat in (1, 2, 3):
        kind = {**KIND, "protocol": f"{name}/1"}
        asked = trial(kind, "program", repeat, batch_size=batch, data="synthetic", mode="device", **variant)
        of = ProgramRun(
            name=ran.name,
            commit=ran.commit,
            tree=ran.tree,
            figure="run",
            command=command_of(ran, asked.asked),
        )
        seconds = STEPS * batch / rate
        epoch = Epoch(index=1, steps=STEPS, train_seconds=seconds, complete=False)
        measured = measurement(
            kind,
            asked,
            batch / rate,
            card=card,
            program=of,
            epochs=(epoch,),
            losses=(),
            precision=PrecisionFound(
                label="program", output_dtypes={}, parameter_dtypes={}, method="the program's own"
            ),
            window=Window(seconds=seconds, steps=STEPS, samples=STEPS * batch),
            step_us=Series.from_microseconds([round(1e6 * batch / rate) + repeat] * STEPS, STEPS),
            steps_together=STEPS,
        )
        made = record(
            asked, measured, on=machine(card, label="card-h", digits="a"), session=SESSION, order=repeat
        )
        found.append(made.model_copy(update={"summary": judge_trial(made)}))
    return found


TABLES = ("gpu-insights", "gpu-insights-2026", "lambda-pytorch-2020", "lambda-pytorch-2022")
"""Of a few hundred figures: fitting the thousands of all takes four times as long."""


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """In which the fit of the tables is kept."""
    return tmp_path_factory.mktemp("state")


@pytest.fixture
def clone(tmp_path, monkeypatch, state, undrawn):
    """A clone with some tables, and no records, plans or claims."""
    parts = ("results/tables/cards.csv", "results/cards.toml", "workloads", "docker")
    published = [f"results/tables/published/{name}.csv" for name in TABLES]
    root = copied(tmp_path / "clone", *parts, *published)
    for module in ("commands.expect", "commands.report"):
        monkeypatch.setattr(f"{module}.user_state_folder", lambda: state)
    return root


@pytest.fixture
def model(clone, state):
    return kept(clone, load_cards(clone), state)


def what_it_should_do(model, card="H100 SXM5 80GB"):
    """Images per second of the program on a card, as expected, and at the ends of nine in ten."""
    (task,) = (t for t in model.tasks.values() if (t.work, t.precision) == ("resnet50_ver2", "amp-fp16"))
    said = model.ask(model.specs[card], task)
    return said.value / 10, said.low / 10, said.high / 10


def row_of(clone):
    analysis, written = write_report(clone, clone / "out", ReportOptions())
    return written.markdown.read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " "), analysis


@pytest.mark.parametrize(
    ("share", "words"), [(0.97, "as it should be"), (0.4, "slower than this card should")]
)
def test_a_record_of_a_program_with_a_table_says_on_page_one_what_part_it_is_of_the_expected(
    clone, model, share, words
):
    value, low, high = what_it_should_do(model)
    write(clone, constructed(share * value))
    text, analysis = row_of(clone)
    (said,) = analysis.request.should.values()
    assert (said.value, said.low, said.high) == pytest.approx((value, low, high), rel=1e-3)
    assert f"{share:.2f} ({share * value / high:.2f} to {share * value / low:.2f})" in text
    assert words in text


def test_another_commit_command_or_option_is_no_run_of_the_table():
    (first, *_), ran = constructed(1000.0), program("gpu-insights")
    assert table_row(first, ran, "H100 SXM5 80GB", 1000.0).value == 10_000
    other = ran.model_copy(update={"commit": "0" * 40})
    assert table_row(first, other, "H100 SXM5 80GB", 1000.0) is None
    for options in ({"passes": 3}, {"arithmetic": "FP32"}):
        (asked, *_) = constructed(1000.0, options=options)
        assert table_row(asked, ran, "H100 SXM5 80GB", 1000.0) is None
    edited = ran.model_copy(update={"command": (*ran.command, "--more")})
    assert table_row(first, edited, "H100 SXM5 80GB", 1000.0) is None


def test_a_table_of_step_times_is_met_by_a_rate():
    ran = program("pytorch-gpu-benchmark")
    (first, *_) = constructed(600.0, name=ran.name, batch=12)
    row = table_row(first, ran, "RTX 3090", 600.0)
    assert (row.value, row.unit, row.batch, row.batch_rule) == (20.0, "ms/step", 12, "fixed")


def test_every_program_with_a_table_has_one_whose_unit_is_known():
    programs = _table_programs(ROOT)
    assert set(programs) == {"gpu-insights", "pytorch-gpu-benchmark"}
    assert {program.table.unit for program in programs.values()} <= RATES | TIMES


def test_an_offer_that_no_record_is_of_costs_by_what_is_expected_beside_the_measured_card(clone, model):
    value, *_ = what_it_should_do(model)
    write(clone, constructed(value))
    (clone / "purchase.toml").write_text(PURCHASE)
    text, analysis = row_of(clone)
    assert analysis.question.kind == "cost" and "--session" not in text
    costs = analysis.costs
    names = [one.name for one in costs.offers]
    assert (names, costs.base) == (["H100 80GB HBM3", "RTX PRO 6000 Blackwell WS"], 0)
    measured, expected = costs.model.offers.values()
    of_it, _, _ = what_it_should_do(model, "RTX PRO 6000 Blackwell WS")
    hours = 8760 * 0.5
    fast, best, slow = expected.hours
    assert measured.hours == (hours, hours, hours)
    assert best == pytest.approx(hours * value / of_it, rel=0.1)
    assert 1.2 < best / fast < 1.8 and best / fast == pytest.approx(slow / best)
    # 4 years, and each draws what it does on paper.
    costs_at = (2250 * (1 if end < 7008 else 2) + 0.15 * end for end in expected.hours)
    assert costs.model.cost(1).cost == pytest.approx(tuple(costs_at))
    assert [asked.card for asked in analysis.request.asked] == ["H100 SXM5 80GB", "RTX PRO 6000 Blackwell WS"]


THREE = """\
currency = "EUR"
life_years = 4
electricity_price = 0.25
hours_on = "RTX 3090"
[[offer]]
card = "RTX 5090"
price = 2600
number = 2
date = 2026-01-05
source = "offer 1"
[[offer]]
card = "MI300X"
price_per_hour = 2
date = 2026-01-05
source = "offer 2"
[[offer]]
card = "H200"
price = 30000
date = 2026-01-05
source = "offer 3"
[[work]]
workload = "cifar_fastai"
model = "resnet50"
precision = "amp-fp16"
hours_per_year = 1000
[[work]]
workload = "anything of my own"
precision = "fp32-ieee"
hours_per_year = 1500
[[work]]
workload = "word_lm"
hours_per_year = 40
"""


def test_a_buyer_without_records_has_each_offer_on_page_one_with_its_cost_or_the_reason(clone):
    (clone / "purchase.toml").write_text(THREE)
    text, analysis = row_of(clone)
    one = page_of(analysis).one
    view, chips = one.answer.table, {chip.name: chip.data for chip in one.chips}
    assert one.answer.headline.data["others"] == () and chips["no-cost"]["names"] == ["MI300X", "H200"]
    assert chips["old-offer"]["count"] == 3
    rows = {row.system.name: row for row in view.rows}
    assert list(rows) == ["RTX 5090", "MI300X", "H200"]
    cheap = rows["RTX 5090"]
    assert (cheap.expected, cheap.offer.number, view.tied) == (True, 2, (cheap,))
    assert cheap.cost.low < cheap.cost.value < cheap.cost.high and cheap.hours.value < 1250
    assert view.costs.cards[view.costs.base].name == "RTX 3090"
    assert [rows[name].missing.state for name in ("MI300X", "H200")] == ["refused", "unknown-card"]
    assert "H200 SXM 141GB" in rows["H200"].missing.data["use"]
    assert [line.name for line in view.costs.left_out] == ["word_lm"]
    assert [part.name for part in page_of(analysis).parts] == ["expected"]
    assert re.search(r"^# Buy RTX 5090.* EUR a year", text, re.M)


def test_a_card_is_known_by_the_name_that_its_driver_gives_and_an_ambiguous_one_is_refused(clone):
    analysis = analyse(evidence_in(clone), AnalysisRequest(STARTED))
    for name, card in (("NVIDIA H100 80GB HBM3", "H100 SXM5 80GB"), ("NVIDIA H200", "H200 SXM 141GB")):
        assert [found.card for found in expect_cards(clone, analysis, name)] == [card]
    with pytest.raises(UserError, match="no one card"):
        expect_cards(clone, analysis, "H200")


def test_a_card_alone_is_answered_in_the_terminal_in_six_lines_with_its_sources_and_no_page(
    clone, capsys, model
):
    report.make_report(clone, ReportOptions(expect="RTX A6000"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 6 and lines[0].startswith("RTX A6000")
    values = [re.search(r": ([\d,.]+).* \(([\d,.]+) to ([\d,.]+)\)", line) for line in lines[1:-1:2]]
    assert all(
        float(low) < float(value) < float(high)
        for value, low, high in (
            [one.replace(",", "") for one in found.groups()] for found in values if found
        )
    ) and all(values)
    assert all("published: " in line and "github:" in line for line in lines[2:-1:2])
    assert not (clone / "report" / "out").exists()


def test_a_card_can_be_asked_for_beside_bundles(clone, model, monkeypatch, tmp_path):
    value, *_ = what_it_should_do(model)
    write(clone, constructed(value))

    packed = tmp_path / "constructed.tar.gz"
    packed.write_bytes(b"constructed")
    lead = SimpleNamespace(session=None)
    bundle = SimpleNamespace(results=read_results(clone), stated=lead, name=packed.name, sha256="0" * 64)
    monkeypatch.setattr(report, "judged", lambda *_, older: bundle)
    how = ReportOptions(bundle=(packed,), expect="RTX A6000")
    analysis, _ = write_report(clone, tmp_path / "out", how)
    assert [one.card for one in analysis.request.asked] == ["RTX A6000"]
    assert analysis.request.should
