from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from harness import units
from harness.plan import budget, capability, estimate, plan_file
from harness.plan.estimate import DeviceModel, Length
from harness.plan.order import Planned
from harness.plan.plan_file import PlanContext
from harness.record import Cpu, Gpu, Limit, store
from harness.record.published.cards import load_cards, peak_tflops
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.here import results_here

REAL = dict.fromkeys(("cifar-10", "cifar-100", "wikitext-2", "tiny-shakespeare", "chestxray"), "real")
PUBLISHED = {("cifar_fastai", "published/1", "resnet50", "fp32-ieee", 1): Length(4578.0, 30)}


@cache
def planned(name, kind="cuda", environment=None):
    context = PlanContext(kind, environment or kind, None, REAL, {"resnet18": True})
    return plan_file.plan_trials(plan_file.load_plan(ROOT, name), context, 1)


def pick(role):
    """The first of mission's trials of ResNet-50 in fp32 that has this role."""
    wanted = ("resnet50", "fp32-ieee")
    variants = ((item, item.trial.asked.variant) for item in planned("mission") if item.role == role)
    return next(item for item, variant in variants if (variant.model, variant.precision) == wanted)


@pytest.mark.parametrize(
    ("role", "own", "setup", "seconds"),
    [
        # The most of 60 to 75 s.
        ("timing", False, {}, 75 + 20),
        ("full", False, {}, 4578 + 20),
        ("full", True, {"cifar_fastai": 7.0}, 900 + 7),
    ],
)
def test_a_trial_takes_its_cap_the_card_s_own_figure_or_a_published_one_and_its_setup(
    role, own, setup, seconds
):
    item = pick(role)
    figures = {estimate.duration_row(item.trial.asked): Length(900.0 / 224**2, 30)} if own else {}
    known = estimate.Speeds(own=figures, published=PUBLISHED, setup_seconds=setup)
    assert estimate.estimate_seconds(item, known) == pytest.approx(seconds)


def known(device, root=ROOT):
    """What the committed records and publications say of a device."""
    cards = load_cards(root)
    read = results_here() if root == ROOT else store.read_results(root)
    records = [stored.record for stored in read.records]
    return estimate.learn_speeds(estimate.published_speeds(root, device, cards), records)


def model(kind, name, power=None):
    card = next((card for card in load_cards(ROOT) if card.name == name), None)
    return DeviceModel(kind, name, peak_tflops(card, "fp16-master") if card else power)


def hours(name, kind, speeds, environment=None, **wanted):
    return {
        round(estimate.estimate_seconds(item, speeds) / 3600, 2)
        for item in planned(name, kind, environment)
        if all(getattr(item.trial.asked.variant, field, None) == value for field, value in wanted.items())
        and item.trial.asked.variant.limit.seconds is None
    }


def seconds_of(items):
    """What trials and their warm-ups take where nothing is known of their speed."""
    unknown = estimate.Speeds()
    trials = sum(estimate.estimate_seconds(item, unknown) for item in items)
    return trials + estimate.warm_up_seconds(items, unknown)


EPYC = model("cpu", "AMD EPYC of 2 cores", 2)


@pytest.mark.parametrize(
    ("name", "wanted", "least", "most"),
    [
        ("programs", {"model": "gpt"}, 0.01, 0.05),
        ("published", {"model": "LSTM", "options": {"epochs": 6}}, 1.0, 2.2),
        ("cpu-claims", {"model": "resnet18"}, 0.3, 0.9),
        ("cpu-claims", {"model": "resnet101"}, 2.0, 5.0),
    ],
)
def test_a_cpu_takes_what_records_of_its_model_and_of_others_took(name, wanted, least, most):
    found = hours(name, "cpu", known(EPYC), **wanted)
    assert found and all(least <= each <= most for each in found), found
    quick = hours(name, "cpu", known(model("cpu", "another", 16)), **wanted)
    assert max(quick) < max(found) / 4, "sixteen cores are taken to be eight times as fast as two"


def test_records_of_the_same_card_model_count_whichever_machine_made_them():
    h100 = known(model("cuda", "H100 SXM5 80GB"))
    assert hours("mission", "cuda", h100, model="LSTM") == {0.16, 0.17}, "592 s by records"
    resnet18 = {"model": "resnet18", "precision": "fp16-master"}
    assert hours("perbos", "cuda", h100, **resnet18, data_mode="device") == {0.07}
    slower = known(model("cuda", "RTX 4090"))
    # The card waits for the host in half to three quarters of the LSTM's time, which no peak shortens.
    assert all(0.2 < each < 0.7 for each in hours("mission", "cuda", slower, model="LSTM"))


def test_a_loader_bounds_what_it_feeds():
    h100 = known(model("cuda", "H100 SXM5 80GB"))
    assert hours("mission", "cuda", h100, model="resnet18", data_mode="host") == {0.45}, "54 s an epoch"


@pytest.mark.parametrize(
    ("name", "card", "wanted", "least", "most"),
    [
        ("iris", "V100 SXM2 16GB", {"gpus": 1}, 25, 50),
        ("iris", "V100 SXM2 16GB", {"gpus": 4}, 7, 15),
        ("chestxray", "V100 PCIe 16GB", {"gpus": 1}, 13.5, 54),
        ("chestxray", "V100 PCIe 16GB", {"gpus": 4}, 5, 20),
    ],
)
def test_what_is_known_of_one_device_serves_several_and_what_was_published_every_protocol(
    name, card, wanted, least, most
):
    found = hours(name, "cuda", known(model("cuda", card)), "cuda126", **wanted)
    assert found and all(least <= 60 * each <= most for each in found), found


def test_a_session_s_own_records_go_before_what_was_known():
    made = build.two_cards()[0]
    cards = load_cards(ROOT)
    device = DeviceModel.from_machine(made.machine, made.trial.asked.device, cards)
    for_another = estimate.Speeds(replace(device, name="another", power=None), cards, published=PUBLISHED)
    assert estimate.learn_speeds(for_another, [made]).own == {}
    now = estimate.learn_speeds(replace(for_another, device=device), [made])
    whole = Planned(made.trial, "full", "resnet50")
    asked = made.trial.asked.variant.model_copy(update={"limit": Limit()})
    whole = replace(
        whole,
        trial=made.trial.model_copy(
            update={
                "asked": made.trial.asked.model_copy(update={"variant": asked}),
                "timeout_seconds": 1e6,
            }
        ),
    )
    setup = now.setup_seconds[made.trial.asked.workload]
    assert estimate.estimate_seconds(whole, now) == pytest.approx(setup + made.summary.protocol_seconds)


@pytest.mark.parametrize(
    ("name", "kind", "seconds"), [("mission", "cuda", 0), ("mission", "rocm", 40), ("quick", "cpu", 0)]
)
def test_a_short_trial_fills_the_caches_of_each_variant_where_something_compiles(name, kind, seconds):
    trials = planned(name, kind)
    variants = {item.trial.id.rpartition("-")[2] for item in trials}
    assert 1 < len(variants) < len(trials)
    assert estimate.warm_up_seconds(trials, estimate.Speeds()) == seconds * len(variants)


def test_what_is_compiled_on_a_gpu_fills_its_caches_first():
    warmed = [item for item in planned("surf") if estimate.warms_up(item.trial)]
    assert {item.trial.asked.variant.profile for item in warmed} == {"tuned"}


@pytest.mark.parametrize(("kind", "trials", "minutes"), [("cuda", 6, 7), ("rocm", 6, 10), ("cpu", 6, 4)])
def test_a_check_of_one_card_is_two_fresh_processes_of_each_work_in_minutes(kind, trials, minutes):
    able, out = capability.split_supported(planned("card", kind), kind, None, 1)
    assert len(able) == trials
    assert {line.what for line in out} == (set() if kind == "cpu" else {f"{n} GPUs" for n in (2, 4, 8)})
    assert seconds_of(able) <= 60 * minutes


def test_a_check_of_the_card_has_no_warm_up_before_it():
    cold = [item for item in planned("card") if not estimate.warms_up(item.trial)]
    assert {item.trial.asked.workload for item in cold} >= {"card"}


@pytest.mark.parametrize(("seconds", "says"), [(40, "40 s"), (720, "12 min"), (12_600, "3.5 h")])
def test_a_duration_is_shown_in_the_unit_a_person_would_use(seconds, says):
    assert units.format_duration(seconds) == says


@pytest.mark.parametrize(
    ("architecture", "left"),
    [
        ("7.5", {"fp32-tf32": "RTX has no TF32", "amp-bf16": "RTX only emulates bf16"}),
        ("8.6", {}),
        (None, {}),
    ],
)
def test_what_a_card_lacks_is_left_out_with_the_reason(architecture, left):
    card = Gpu(index=0, vendor="NVIDIA", name="RTX", architecture=architecture)
    kept, out = capability.split_supported(planned("mission"), "cuda", card)
    assert {item.what: item.reason for item in out} == left
    assert len(kept) + sum(item.trials for item in out) == len(planned("mission"))


@pytest.mark.parametrize(
    ("architecture", "kept"),
    [("6.1", {"default"}), ("7.0", {"default", "tuned"}), (None, {"default", "tuned"})],
)
def test_nothing_is_compiled_on_a_card_that_the_compiler_has_no_code_for(architecture, kept):
    card = Gpu(index=0, vendor="NVIDIA", name="GTX", architecture=architecture)
    able, out = capability.split_supported(planned("surf"), "cuda", card)
    variants = [item.trial.asked.variant for item in able]
    assert {each.profile for each in variants if each.options.get("compile") is not False} == kept
    assert ("compiled" in {item.what for item in out}) == (architecture == "6.1")


NO_TF32 = "torch on ROCm has no TF32 for MI's convolutions"


@pytest.mark.parametrize(
    ("kind", "architecture", "tf32", "bf16"),
    [
        ("cpu", None, "a CPU has no TF32", None),
        ("rocm", "gfx942:sramecc+:xnack-", NO_TF32, None),
        ("rocm", "gfx906", NO_TF32, "MI has no bf16"),
        ("rocm", None, NO_TF32, None),
    ],
)
def test_nothing_is_planned_that_the_workloads_refuse(kind, architecture, tf32, bf16):
    card = Gpu(index=0, vendor="AMD", name="MI", architecture=architecture) if kind == "rocm" else None
    assert capability.hardware_refusal("fp32-tf32", kind, card) == tf32
    assert capability.hardware_refusal("amp-bf16", kind, card) == bf16


@pytest.mark.parametrize(
    ("kind", "cards", "kept"), [("cuda", 1, []), ("rocm", 4, [2, 4]), ("cuda", 8, [2, 4, 8]), ("cpu", 0, [2])]
)
def test_what_several_devices_reach_together_is_planned_only_where_there_are_several(kind, cards, kept):
    able, out = capability.split_supported(planned("ceilings", kind), kind, None, cards)
    variants = [item.trial.asked.variant for item in able if item.model == "all-reduce"]
    assert sorted({variant.gpus for variant in variants}) == kept
    assert len(variants) == 3 * len(kept)
    dropped = {line.what: line.reason for line in out if "GPUs" in line.what}
    more = [n for n in (2, 4, 8) if kind != "cpu" and n not in kept]
    assert dropped == {f"{n} GPUs": f"the session measures on {cards}" for n in more}


@pytest.mark.parametrize(("native", "trials", "minutes"), [(("bf16",), 12, 5), ((), 6, 3), (None, 12, 5)])
def test_a_first_look_takes_minutes_on_two_cores_and_leaves_out_what_they_emulate(native, trials, minutes):
    quick, cpu = planned("quick", "cpu"), Cpu(native_16_bit=native)
    able, out = capability.split_supported(quick, "cpu", None, 0, cpu=cpu)
    assert len(able) == trials
    assert sum(left.trials for left in out) == 12 - trials
    assert seconds_of(able) <= 60 * minutes


def test_a_first_look_takes_six_minutes_at_most_on_a_gpu():
    assert seconds_of(planned("quick")) <= 360


@pytest.mark.parametrize(
    ("precision", "native", "left"),
    [
        ("amp-bf16", (), True),
        ("amp-bf16", ("bf16",), False),
        ("fp16-master", ("bf16",), True),
        ("amp-fp16", ("bf16", "fp16"), False),
        ("pure-bf16", None, False),
        ("fp32-ieee", (), False),
    ],
)
def test_a_cpu_emulates_the_16_bit_types_that_it_does_not_compute_in(precision, native, left):
    assert (capability.emulation_refusal(precision, Cpu(native_16_bit=native)) is not None) is left


def test_what_a_cpu_emulates_is_planned_where_it_is_asked_for_by_name():
    quick, cpu = planned("quick", "cpu"), Cpu(native_16_bit=())
    able, out = capability.split_supported(quick, "cpu", None, 0, cpu=cpu, by_name=("amp-bf16",))
    assert (len(able), out) == (12, ())
    kept, out = budget.keep_wanted(
        able, lambda item: "bf16" in item.trial.asked.variant.precision, "others", "-"
    )
    assert {item.trial.asked.variant.precision for item in kept} == {"amp-bf16"}
    assert len(kept) + sum(left.trials for left in out) == 12


def test_only_where_nothing_is_known_of_a_duration_its_time_out_stands_in():
    full, capped = pick("full"), pick("timing")
    short = replace(full, trial=full.trial.model_copy(update={"timeout_seconds": 600.0}))
    known = estimate.Speeds(published=PUBLISHED)
    assert estimate.is_time_out(short, estimate.Speeds())
    assert estimate.estimate_seconds(short, estimate.Speeds()) == 600.0
    assert not any(estimate.is_time_out(item, known) for item in (short, capped))
