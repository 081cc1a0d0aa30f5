"""The published figures: read strictly, and true to themselves."""

from __future__ import annotations

import re
import shutil

import pytest

from harness.errors import UserError
from harness.record import Claim, Side
from harness.record.published import claim_set
from harness.record.published.cards import load_cards
from harness.record.published.claim_set import applies_to, is_same_card
from tests.helpers import ROOT
from tests.helpers.here import claims_here, load_claims

GOOD = """
[defaults]
study = "007"
workload = "toy"
protocol = "published/1"
source = "a book"

[caveats]
once = "One run."

[[claims]]
id = "007-seconds"
kind = "absolute"
metric = "protocol_seconds"
of = { card = "T4", model = "net" }
value = 12
unit = "s"
caveats = ["once"]

[[curves]]
side = { model = "net" }
epochs = [1, 2]
train_loss = [2.0, 1.0]
valid_loss = [2.1, 1.1]
quality = [0.1, 0.2]
"""


@pytest.fixture(scope="module")
def published():
    return claims_here()


@pytest.fixture(scope="module")
def cards():
    return load_cards(ROOT)


def by_id(published):
    return {claim.id: claim for claim in published.claims}


def put(root, text, name="s007.toml"):
    folder = root / claim_set.FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return root


def figure_of(published, side, metric, study):
    """The absolute or quality figure of one side, found among the claims."""
    found = [
        claim.value
        for claim in published.claims
        if claim.study == study
        and claim.kind in ("absolute", "quality")
        and claim.metric == metric
        and claim.of.model_copy(update={"data_mode": None}) == side.model_copy(update={"data_mode": None})
    ]
    return found[0] if found else None


def test_every_claim_has_a_source_that_others_find(published):
    for claim in published.claims:
        assert claim.source.startswith(("github:", "https://")), claim.id


def test_every_claim_names_the_commit_that_was_read_or_says_that_there_is_none(published):
    for claim in published.claims:
        commit = re.match(r"github:[\w.-]+/[\w.-]+@[0-9a-f]{7,40}\b", claim.source)
        assert bool(commit) != ("a page: no commit" in claim.source), claim.id


def test_accuracies_are_twelve_thousandths(published):
    accuracies = [
        claim.value
        for claim in published.claims
        if (claim.workload, claim.metric) == ("cifar_fastai", "accuracy")
        and claim.kind == "quality"
        and claim.value
    ]
    accuracies += [value for curve in published.curves for value in curve.quality]
    assert len(accuracies) == 544 + 18 + 30 + 4 + 6
    for accuracy in accuracies:
        assert accuracy == pytest.approx(round(accuracy * 12000) / 12000, abs=5.1e-7)


def test_derived_ratios_are_the_quotients_of_the_figures_they_come_from(published):
    checked = 0
    for claim in published.claims:
        if claim.kind != "ratio" or claim.value is None or claim.words:
            continue
        if claim.metric == "batch_ratio":
            of, over = claim.of.batch_size, claim.over.batch_size
        else:
            of, over = (
                figure_of(published, side, claim.metric, claim.study) for side in (claim.of, claim.over)
            )
        assert claim.value == pytest.approx(over / of, abs=claim.half_digit * 1.01), claim.id
        checked += 1
    assert checked == 9 + 8 + 5 + 20 + 6 + 11 + 12


def test_the_posts_own_ratios_are_kept_beside_the_notebooks_that_contradict_them(published):
    found = by_id(published)
    for card, said in (("2080ti", 1.18), ("1080ti", 1.13)):
        post = found[f"004-post-{card}-resnet101-fp32-over-fp16"]
        notebook = found[f"004-{card}-resnet101-fp32-over-fp16"]
        assert post.value == said
        assert abs(notebook.value - post.value) > 0.05
        assert any("disagree" in caveat for caveat in post.caveats)


def test_curves_have_all_544_epochs_and_end_at_the_published_qualities(published):
    whole = [curve for curve in published.curves if curve.part == "protocol"]
    assert sum(len(curve.epochs) for curve in published.curves) == 544
    assert [len(curve.epochs) for curve in whole] == [30] * 18
    for curve in whole:
        for metric, values in (
            ("accuracy", curve.quality),
            ("valid_loss", curve.valid_loss),
            ("smoothed_train_loss", curve.train_loss),
        ):
            assert figure_of(published, curve.side, metric, curve.study) == values[-1]


def test_curves_are_found_by_model_and_precision_without_the_lead_in_runs(published):
    found = [
        curve
        for curve in published.workload_curves("cifar_fastai")
        if (curve.side.model, curve.side.precision) == ("resnet18", "fp16-master")
    ]
    assert {(curve.side.card, len(curve.epochs)) for curve in found} == {
        ("RTX 2080 Ti", 30),
        ("GTX 1080 Ti", 30),
    }
    assert published.workload_curves("word_lm") == ()


def test_the_peak_of_the_mlp_is_the_sum_of_what_it_must_hold(published):
    found = by_id(published)
    width, batch, batches, float32 = 4096, 512, 50, 4
    parameters = 3 * (width * width + width)
    data = batches * batch * width * float32 * 2
    held = data + 2 * parameters * float32 + 13 * batch * width * float32 + 17408
    assert found["001-mlp-parameters"].value == parameters
    assert found["001-mlp-fp32-peak-by-arithmetic"].value == held
    assert found["001-mlp-fp32-peak-bytes"].value == held


def test_defaults_and_caveats_are_written_out_in_full(tmp_path):
    put(tmp_path, GOOD)
    found = load_claims(tmp_path)
    assert (found.claims[0].study, found.claims[0].caveats) == ("007", ("One run.",))
    assert found.curves[0].source == "a book"


def test_a_clone_without_claims_has_none(tmp_path):
    found = load_claims(tmp_path)
    assert (found.claims, found.curves) == ((), ())


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('caveats = ["once"]', 'caveats = ["twice"]', "claim '007-seconds': 'twice' is not in [caveats]"),
        ('unit = "s"', 'unit = "s"\nwhy = "thrice"', "claim '007-seconds': 'thrice' is not in [caveats]"),
        ("[defaults]", "[default]", "'default': unknown key"),
        ('study = "007"', 'study = "007"\nspeed = 3', "claim '007-seconds': 'speed': unknown key"),
        ('card = "T4", ', "", "claim '007-seconds': 'of.card': an absolute figure is for one card"),
        ("value = 12", "", "'value': a claim without a value is a claim in words"),
        ("value = 12", "value = 0", "'value': 0 is not above 0"),
        ("value = 12", "value = 12\ntarget = 0.75", "'target': the time to a target names it, and no other"),
        ('"protocol_seconds"', '"seconds_to_target"', "'target': the time to a target names it"),
        ('unit = "s"', 'unit = "s"\ncard_class = "any"', "an absolute figure is claimed for its own card"),
        ('unit = "s"', 'unit = "s"\nreconstructed = true', "an absolute figure needs the published protocol"),
        ('unit = "s"', 'unit = "minutes"', "'unit': 'minutes' is no unit of it; it is given in s"),
        ('"absolute"', '"ratio"', "'over': a claim of kind 'ratio' needs a second side"),
        ('"absolute"', '"order"', "'over': a claim of kind 'order' needs a second side"),
        ('source = "a book"', 'source = " "', "'source': is empty"),
        ("epochs = [1, 2]", "epochs = [1, 3]", "curve 1: 'epochs': do not count from 1"),
        ("quality = [0.1, 0.2]", "quality = [0.1]", "curve 1: 'quality': has 1 values for 2 epochs"),
        ('side = { model = "net" }', "", "curve 1: 'side': it is missing"),
        (
            'kind = "absolute"',
            'kind = "quality"\ncard_class = "any"',
            "'why': a claim that was measured on one card says why it is claimed for a class",
        ),
        (
            'of = { card = "T4", model = "net" }',
            'of = { card = "T4", model = "net" }\npoints = [{ at = 1, of = { model = "net" } }]',
            "'points': a trend has two or more at different places, and no other kind has any",
        ),
        ('id = "007-seconds"', f'id = "007-{"x" * 20_000}"', "xxx': 'id': String should match pattern"),
    ],
)
def test_a_claim_that_cannot_be_meant_is_refused(tmp_path, old, new, problem):
    assert old in GOOD
    put(tmp_path, GOOD.replace(old, new))
    with pytest.raises(UserError) as caught:
        load_claims(tmp_path)
    assert caught.value.problem.startswith("results/claims/s007.toml: ") and problem in caught.value.problem


def test_two_claims_of_one_name_are_refused(tmp_path):
    put(tmp_path, GOOD)
    put(tmp_path, GOOD, "s008.toml")
    with pytest.raises(UserError, match="two claims have the id '007-seconds'"):
        load_claims(tmp_path)


def test_one_figure_under_two_names_is_refused(tmp_path):
    put(tmp_path, GOOD)
    put(
        tmp_path, GOOD.replace("007-seconds", "007-duration").replace("value = 12", "value = 13"), "s008.toml"
    )
    with pytest.raises(UserError, match=r"claim '007-duration' is the same figure as '007-seconds'"):
        load_claims(tmp_path)


def test_a_card_that_no_table_has_is_refused(tmp_path):
    put(tmp_path, GOOD.replace('"T4"', '"T5"'))
    assert load_claims(tmp_path).claims, "without a table of cards nothing is known of them"
    shutil.copy(ROOT / "results" / "cards.toml", tmp_path / "results")
    with pytest.raises(UserError, match=r"claim '007-seconds': 'of.card': 'T5' is neither in"):
        load_claims(tmp_path)
    put(tmp_path, GOOD.replace('"T4"', '"T5"').replace("[caveats]", '[cards]\n"T5" = "new"\n\n[caveats]'))
    assert load_claims(tmp_path).claims[0].of.card == "T5"


TREND = """
[[claims]]
id = "007-grows"
kind = "trend"
metric = "protocol_seconds"
points = [{ at = 18, of = { model = "small" } }, { at = 34, of = { model = "large" } }]
relation = "greater"
unit = "s"
words = "It grows."
"""


def test_a_trend_begins_at_its_first_point(tmp_path):
    put(tmp_path, GOOD + TREND)
    found = load_claims(tmp_path).claims[1]
    assert found.of == found.points[0].of == Side(model="small")


def test_why_a_claim_is_made_for_a_class_stands_among_its_caveats(published):
    wide = [claim for claim in published.claims if claim.why]
    assert len(wide) > 100
    assert all(claim.why in claim.caveats and claim.why.endswith(".") for claim in wide)


@pytest.mark.parametrize(
    ("published_name", "device", "same"),
    [
        ("RTX 2080 Ti", "NVIDIA GeForce RTX 2080 Ti", True),
        ("RTX 2060", "NVIDIA GeForce RTX 2060 SUPER", False),
        ("T4", "Tesla T4", True),
        ("A100", "NVIDIA A100-PCIE-40GB", True),
        ("A100 SXM4", "NVIDIA A100-SXM4-80GB", True),
        ("A100 SXM4", "NVIDIA A100-PCIE-40GB", False),
        ("RTX A6000", "NVIDIA RTX A6000", True),
        ("A10", "NVIDIA A100-PCIE-40GB", False),
    ],
)
def test_a_published_card_is_known_by_its_device_name(cards, published_name, device, same):
    assert is_same_card(published_name, device, cards) is same


@pytest.mark.parametrize(
    ("name", "kind", "device", "capability", "answer"),
    [
        ("004-2080ti-resnet50-fp32-seconds", "cuda", "NVIDIA H200", "9.0", False),
        ("004-2080ti-resnet50-fp32-seconds", "cuda", "NVIDIA GeForce RTX 2080 Ti", "7.5", True),
        ("004-2080ti-resnet50-fp32-accuracy", "cpu", "a CPU", None, True),
        ("004-post-resnet50-fp16-faster", "cuda", "NVIDIA H200", "9.0", True),
        ("004-post-resnet50-fp16-faster", "cpu", "a CPU", None, False),
        ("001-readme-mlp-faster", "cuda", "NVIDIA GeForce GTX 1080 Ti", "6.1", False),
        ("001-readme-mlp-faster", "cuda", "NVIDIA H200", "9.0", True),
        ("004-resnet50-fp32-1080ti-over-2080ti", "cuda", "NVIDIA GeForce GTX 1080 Ti", "6.1", True),
    ],
)
def test_a_claim_speaks_of_its_own_card_or_of_its_class(
    published, cards, name, kind, device, capability, answer
):
    assert applies_to(by_id(published)[name], kind, device, capability, cards) is answer


def test_a_claim_that_names_no_card_and_no_class_speaks_of_any(cards):
    claim = Claim(
        id="x",
        study="x",
        kind="structure",
        workload="x",
        protocol="published/1",
        metric="parameters",
        of=Side(model="x"),
        value=1,
        unit="parameters",
        source="x",
    )
    assert applies_to(claim, "cpu", "a CPU", None, cards) is True
