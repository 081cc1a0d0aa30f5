from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import PlanError, UserError
from harness.files import text_sha256
from harness.plan import plan_file
from harness.plan.order import Planned
from harness.plan.plan_file import PlanContext
from harness.record import DataSource, Question
from tests.helpers import ROOT
from tests.helpers.here import claims_here

DATA: dict[str, DataSource] = {"wikitext-2": "real", "cifar-100": "generated"}
CPU = PlanContext("cpu", "cpu", "0" * 64, DATA, {"resnet18": True})
CUDA = PlanContext("cuda", "cuda", None, {"wikitext-2": "real", "cifar-100": "real"}, {})


def trials_of(name: str, seed: int = 1, context: PlanContext = CPU) -> tuple[Planned, ...]:
    """The trials of a plan that is shipped."""
    return plan_file.plan_trials(plan_file.load_plan(ROOT, name), context, seed)


def written(folder: Path, text: str) -> Path:
    (folder / "plans").mkdir()
    (folder / "plans" / "mine.toml").write_text(text)
    return folder


MEASURE = """
[[measure]]
workload = "word_lm"
protocol = "published/1"
model = "LSTM"
precision = ["fp32-ieee", "amp-bf16"]
batch_size = { "fp32-ieee" = 20, "amp-bf16" = 40 }
data_mode = ["device", "cached"]
"""


@pytest.mark.parametrize("name", plan_file.plan_files(ROOT))
def test_every_plan_that_is_shipped_can_be_loaded_and_says_what_it_is(name):
    loaded = plan_file.load_plan(ROOT, name)
    assert loaded.title
    assert loaded.question


def test_rows_of_one_gpu_are_planned_for_each_card_and_rows_of_several_once(tmp_path):
    head = 'name = "mine"\ntitle = "x"\nrepeats = 2\neach_card = true\n'
    row = MEASURE.replace('["fp32-ieee", "amp-bf16"]', '"fp32-ieee"').replace(
        '["device", "cached"]', '"cached"'
    )
    loaded = plan_file.load_plan(written(tmp_path, f"{head}{row}{row}gpus = 2\n"), "mine")
    eight, one = (plan_file.plan_trials(loaded, replace(CPU, cards=cards), seed=1) for cards in (8, 1))
    places = [item.trial.asked.card for item in eight if item.trial.asked.variant.gpus == 1]
    assert sorted(places) == sorted([*range(8)] * 2)
    assert {item.trial.asked.card for item in eight if item.trial.asked.variant.gpus == 2} == {None}
    alone = [item.trial for item in one]
    assert {trial.asked.card for trial in alone} == {None} and len(alone) == 4
    assert "card" not in alone[0].asked.model_dump(mode="json")
    assert len({item.trial.digest_on_any_card for item in eight}) == 2


@pytest.mark.parametrize(
    ("memory_gb", "batch"), [(150.7, 128), (85.5, 64), (24.0, 16), (1.0, 1), (None, 128)]
)
def test_a_batch_is_halved_until_the_memory_of_a_card_holds_its_samples(tmp_path, memory_gb, batch):
    row = MEASURE.replace('{ "fp32-ieee" = 20, "amp-bf16" = 40 }', "128\nsample_gb = 1.1")
    loaded = plan_file.load_plan(written(tmp_path, f'name = "mine"\ntitle = "x"\n{row}'), "mine")
    planned = plan_file.plan_trials(loaded, replace(CPU, memory_gb=memory_gb), seed=1)
    assert {item.trial.asked.variant.batch_size for item in planned} == {batch}
    assert "sample_gb" not in planned[0].trial.canonical()


SIZED = f"""
name = "mine"
title = "The study"
repeats = 7
{MEASURE}
[size.mine-small]
title = "A part of it"
{MEASURE.replace("[[measure]]", "[[size.mine-small.measure]]")}
role = "batch-sweep"
"""


def test_a_size_is_a_plan_of_its_own_name_in_the_file_of_its_study(tmp_path):
    root = written(tmp_path, SIZED)
    assert list(plan_file.plan_files(root)) == ["mine", "mine-small"]
    whole, small = (plan_file.load_plan(root, name) for name in plan_file.plan_files(root))
    assert (whole.title, whole.repeats, small.title, small.repeats) == ("The study", 7, "A part of it", 5)
    assert (small.name, small.sha256) == ("mine-small", whole.sha256)


def test_a_file_that_was_a_plan_of_its_own_before_goes_before_a_size_of_that_name(tmp_path):
    root = written(tmp_path, SIZED)
    (root / "plans" / "mine-small.toml").write_text(f'name = "mine-small"\ntitle = "Own"\n{MEASURE}')
    assert plan_file.load_plan(root, "mine-small").title == "Own"


def test_a_file_that_cannot_be_read_hides_no_other_plan(tmp_path):
    root = written(tmp_path, SIZED)
    (root / "plans" / "bad.toml").write_text("[[")
    assert plan_file.load_plan(root, "mine-small").title == "A part of it"
    with pytest.raises(PlanError, match=r"plans/bad.toml is not TOML"):
        plan_file.load_plan(root, "bad")


def test_plan_peers_asks_for_every_side_of_the_published_throughput_tables():
    """On a card that has every precision, whatever fits; not rows that stand against their own table."""
    asked = [one.trial.asked.variant for one in trials_of("peers", context=CUDA)]
    there = {(v.model, v.precision, v.batch_size, v.layout, v.image_size) for v in asked}
    against = ("lambda-v2-", "timm-program-")
    tables = [
        claim
        for claim in claims_here().claims
        if claim.study in ("timm", "lambda", "milabench") and not claim.id.startswith(against)
    ]
    assert len(tables) > 30
    for claim in tables:
        for side in (claim.of, claim.over or claim.of):
            wanted = (side.model, side.precision, side.batch_size, side.layout, side.image_size)
            assert wanted in there, claim.id
    assert {tuple(v.options.items()) for v in asked if v.gpus == 1} == {(("cudnn_benchmark", True),)}


def test_lists_multiply_and_tables_are_looked_up_by_precision(tmp_path):
    loaded = plan_file.load_plan(written(tmp_path, f'name = "mine"\ntitle = "x"\n{MEASURE}'), "mine")
    found = {
        (v.precision, v.batch_size, v.data_mode)
        for v in plan_file.measure_variants(loaded.measure[0], "mine")
    }
    assert found == {
        ("fp32-ieee", 20, "device"),
        ("fp32-ieee", 20, "cached"),
        ("amp-bf16", 40, "device"),
        ("amp-bf16", 40, "cached"),
    }


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (f'{MEASURE}presicion = "fp32-ieee"\n', r"plans/mine\.toml: 'measure 1\.presicion': unknown key"),
        (MEASURE.replace('"amp-bf16"]', '"fp32"]'), "'fp32' is no precision; take one of fp32-ieee"),
        (
            f"{MEASURE}limit = {{ seconds = 75, seconds_at_most = 30 }}\n",
            "seconds_at_most is 30 and seconds, the least, is 75: the most must not be below the least",
        ),
        (f"{MEASURE}limit = {{ seconds_at_most = 30 }}\n", "and seconds, the least, is missing"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused_with_its_place(measure, words, tmp_path):
    root = written(tmp_path, f'name = "mine"\ntitle = "x"\n{measure}')
    with pytest.raises(PlanError, match=words):
        plan_file.load_plan(root, "mine")


@pytest.mark.parametrize(
    ("name", "words"), [("quik", r"; is 'quick' meant\?$"), ("x", "; the plans are .*mission.*quick")]
)
def test_a_plan_that_is_not_there_is_refused_with_the_nearest_or_all(name, words):
    with pytest.raises(UserError, match=f"there is no plan '{name}'{words}"):
        plan_file.load_plan(ROOT, name)


def test_the_same_seed_gives_the_same_order_and_another_seed_another():
    first, again, other = (trials_of("quick", seed) for seed in (1, 1, 2))
    assert first == again
    assert [p.trial.id for p in first] != [p.trial.id for p in other]
    assert {p.trial.id for p in first} == {p.trial.id for p in other}


def test_every_round_is_whole_before_the_next_begins_and_full_lengths_part_them_into_start_middle_and_end():
    repeats = [item.trial.repeat for item in trials_of("quick", 5)]
    assert repeats == [1] * 4 + [2] * 4 + [3] * 4
    roles = [item.role for item in trials_of("mission", 3, CUDA) if item.role != "batch-sweep"]
    runs = [role for at, role in enumerate(roles) if at == 0 or roles[at - 1] != role]
    assert runs == ["timing", "full", "timing", "full", "timing"]


def test_generated_data_and_missing_weights_are_part_of_what_is_asked():
    by_workload = {item.trial.asked.workload: item.trial.asked for item in trials_of("quick")}
    assert by_workload["cifar_fastai"].data == "generated"
    assert by_workload["cifar_fastai"].weights == "pretrained"
    assert by_workload["word_lm"].data == "real"
    assert by_workload["word_lm"].weights is None


def test_another_lock_makes_another_trial():
    locks = (CPU, replace(CPU, lock_sha256="1" * 64))
    ids = [{item.trial.id for item in trials_of("quick", context=context)} for context in locks]
    assert not ids[0] & ids[1]


def test_targets_come_with_a_trial_and_change_nothing_of_what_is_asked():
    loaded = plan_file.load_plan(ROOT, "quick")
    parts = [part.model_copy(update={"targets": (0.3, 0.4)}) for part in loaded.measure]
    aimed = plan_file.plan_trials(loaded.model_copy(update={"measure": tuple(parts)}), CPU, 1)
    plain = trials_of("quick")
    assert [item.trial.id for item in aimed] == [item.trial.id for item in plain]
    assert {item.trial.targets for item in aimed} == {(0.3, 0.4)}
    assert "targets" not in plain[0].trial.model_dump(), "records from before targets stay as they are"


def test_a_plan_with_nothing_for_the_device_says_what_it_is_for():
    with pytest.raises(PlanError, match="plan 'mission' has nothing for the device kind 'cpu'"):
        trials_of("mission")


def test_within_a_round_what_a_reader_wants_first_comes_first():
    first = [
        item for item in trials_of("mission", 3, CUDA) if item.role == "timing" and item.trial.repeat == 1
    ]
    assert [item.priority for item in first] == sorted(item.priority for item in first)
    soonest = {item.trial.asked.variant.precision for item in first if item.priority == 1}
    assert soonest == {"fp32-ieee", "fp16-master"}


def test_a_batch_size_sweep_grows_in_the_first_round_and_is_shuffled_like_the_rest_later():
    planned = trials_of("surf", 3, CUDA)
    swept = [item.trial for item in planned if item.role == "batch-sweep"]
    climbed, later = (
        [trial.asked.variant.batch_size for trial in swept if trial.repeat == repeat] for repeat in (1, 2)
    )
    assert climbed == sorted(climbed) and later != sorted(later)
    first = [item.role for item in planned if item.trial.repeat == 1]
    assert first != sorted(first), "rungs stand among the other trials"


def test_a_measure_that_names_images_is_left_out_of_every_other(tmp_path):
    measure = f'{MEASURE}images = ["tensorflow"]\n'
    loaded = plan_file.load_plan(written(tmp_path, f'name = "mine"\ntitle = "x"\n{measure}'), "mine")
    context = PlanContext("cpu", "tensorflow", None, DATA, {})
    assert plan_file.plan_trials(loaded, context, 1)
    with pytest.raises(PlanError, match="has nothing for 'cpu' in the image 'cpu'") as raised:
        plan_file.plan_trials(loaded, CPU, 1)
    assert raised.value.remedy == "take --image with one of tensorflow"


@pytest.mark.parametrize("name", ["surf", "today", "modern"])
def test_a_plan_of_what_is_trained_today_has_rows_for_two_four_and_eight_gpus(name):
    counts = {
        variant.gpus
        for measure in plan_file.load_plan(ROOT, name).measure
        if "cuda" in measure.devices
        for variant in plan_file.measure_variants(measure, name)
    }
    assert counts >= {1, 2, 4, 8}


@pytest.mark.parametrize(
    ("question", "problem"),
    [
        ('{ is = "faster", by = "gpus" }', "no two rows differ in gpus"),
        ('{ is = "faster" }', "it says not by what"),
        ('{ is = "reach" }', "no row has targets"),
        ('{ is = "sound" }', "no row has the workload 'card'"),
        ('{ is = "limits" }', "no row has the workload 'ceilings'"),
        ('{ is = "cost" }', "purchase.toml asks that"),
        ('{ is = "holds", by = "gpus" }', "'by' goes with is = 'faster'"),
        ('{ is = "quicker" }', "question.is"),
    ],
)
def test_a_question_that_a_plan_s_rows_cannot_answer_is_refused(question, problem, tmp_path):
    root = written(tmp_path, f'name = "mine"\ntitle = "Mine"\nquestion = {question}\n{MEASURE}')
    with pytest.raises(PlanError, match=problem):
        plan_file.load_plan(root, "mine")


def test_a_question_is_no_part_of_a_plan_s_hash(tmp_path):
    root = written(tmp_path, f'name = "mine"\ntitle = "Mine"\n{MEASURE}')
    path, before = root / "plans" / "mine.toml", plan_file.load_plan(root, "mine")
    text = path.read_text()
    path.write_text(
        text.replace("title", 'question = { is = "faster", by = "precision" }\ntitle'), newline="\r\n"
    )
    after = plan_file.load_plan(root, "mine")
    assert (before.question, after.question) == (None, Question(kind="faster", by="precision"))
    assert before.sha256 == after.sha256 == text_sha256(text.encode())
    assert plan_file.plan_questions(root) == {"mine": after.question}
