from __future__ import annotations

import json
import platform
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from commands import run as running
from commands.terminal import Screen
from harness.errors import GpudynoError, PlanError
from harness.image.images import load_images
from harness.plan import plan_file
from harness.plan.plan_file import PlanContext
from harness.record import Session, store
from harness.run import runner, session
from harness.run.choice import choose_trials, session_against
from harness.run.second_stack import second_stack
from harness.settings import Settings, load_settings
from tests.helpers import ROOT, clone
from tests.helpers.runs import alternating, records

IMAGES = load_images(ROOT)
IMAGE = IMAGES.image("cpu")
OWN = PlanContext("cpu", "cpu", "0" * 64, {"cifar-100": "real", "wikitext-2": "real"}, {"resnet18": True})
OTHER = replace(OWN, variables={"OMP_NUM_THREADS": "1"})


def run(setup, monkeypatch, root) -> Session:
    monkeypatch.setenv("GPUDYNO_STATE", str(root / "state"))
    built = clone.built(root)
    return running._run_trials(setup, (built, built), {}, running.RunOptions(), Screen()).session


@pytest.mark.parametrize("name", ["quick", "desk"])
def test_each_trial_stands_beside_its_twin_in_random_order_in_one_block(name):
    loaded = plan_file.load_plan(ROOT, name).model_copy(update={"blocks": 2})
    first = Counter[bool]()
    for seed in range(40):
        both = plan_file.plan_trials(loaded, OWN, seed, OTHER)
        for one, other in zip(both[::2], both[1::2], strict=True):
            assert one.twins == other.twins and one.block == other.block
            assert {bool(item.trial.asked.variables) for item in (one, other)} == {True, False}
            first[bool(one.trial.asked.variables)] += 1
    assert 0.4 < first[True] / first.total() < 0.6


def test_a_trial_of_the_image_s_own_stack_keeps_its_id_beside_a_second():
    loaded = plan_file.load_plan(ROOT, "quick")
    alone = {item.trial.id for item in plan_file.plan_trials(loaded, OWN, 1)}
    both = {item.trial.id for item in plan_file.plan_trials(loaded, OWN, 1, OTHER)}
    assert alone < both and len(both) == 2 * len(alone)
    dumped = json.loads(plan_file.plan_trials(loaded, OWN, 1)[0].trial.model_dump_json())
    assert "variables" not in dumped["asked"]


def test_work_that_one_stack_alone_has_is_left_out():
    loaded = plan_file.load_plan(ROOT, "quick")
    here = loaded.measure[0].model_copy(update={"images": ("cpu",)})
    loaded = loaded.model_copy(update={"measure": (here, *loaded.measure[1:])})
    both = plan_file.plan_trials(loaded, OWN, 1, replace(OWN, environment="other"))
    assert here.workload not in {item.trial.asked.workload for item in both}
    assert {item.trial.asked.environment for item in both} == {"cpu", "other"}


def test_both_stacks_run_in_one_session_and_each_process_gets_its_own_variables_and_caches(
    tmp_path, monkeypatch
):
    root = clone.make(tmp_path)
    path = root / "workloads" / "fake.py"
    own = '"threads-" + os.environ.get("OMP_NUM_THREADS", "all")'
    path.write_text(path.read_text().replace('"name": "none", "source"', f'"name": {own}, "source"'))
    caches: list[Path] = []
    monkeypatch.setattr(runner.shutil, "rmtree", lambda path, **more: caches.append(path))
    opened = run(alternating(root), monkeypatch, root)
    (cache,) = (path for path in caches if path.parent.name == "cache")
    assert len([*cache.glob("cpu-*")]) == len([*cache.iterdir()]) == 2
    found = sorted(records(root), key=lambda record: record.order)
    assert [record.order for record in found] == list(range(8)) and len({r.session for r in found}) == 1
    for record in found:
        assert record.measurement is not None
        variables = record.trial.asked.variables
        assert record.measurement.data.name == f"threads-{variables.get('OMP_NUM_THREADS', 'all')}"
        assert record.environment.passed_variables == variables
    for one, other in zip(found[::2], found[1::2], strict=True):
        assert one.trial.asked.work == other.trial.asked.work and one.trial.repeat == other.trial.repeat
    assert opened.against is not None and opened.against.asked == ("env:OMP_NUM_THREADS=1",)
    assert {record.trial.asked.stack == opened.against.stack for record in found} == {True, False}


def test_a_session_of_two_stacks_goes_on_where_it_was_killed_and_one_of_one_stack_does_not_join_it(
    tmp_path, monkeypatch
):
    root = clone.make(tmp_path)
    setup = alternating(root)
    monkeypatch.setenv("GPUDYNO_STATE", str(root / "state"))
    ended = running.run_session

    def killed(ready, opened, watcher, budget, **options):
        return ended(ready, opened, watcher, replace(budget, deadline=0.0), **options)

    monkeypatch.setattr(running, "run_session", killed)
    first = run(setup, monkeypatch, root)
    monkeypatch.setattr(running, "run_session", ended)
    alone = run(clone.bench(root), monkeypatch, root)
    again = run(setup, monkeypatch, root)
    assert (again.id, alone.id == first.id) == (first.id, False)
    assert len(store.session_records(root, again)) == 8
    assert session.find_open_session(root, "mine", session_against(setup)) is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("env:OMP_NUM_THREADS", "names no variable with its value"),
        ("env:HOME=/elsewhere", "gpudyno itself sets HOME"),
        ("env:CUDA_VISIBLE_DEVICES=1", "gpudyno itself sets CUDA_VISIBLE_DEVICES"),
        ("env:LD_PRELOAD=/home/alice/lib.so", "the value of LD_PRELOAD names a folder"),
        ("env:9=1", "names no variable with its value"),
        ("nothing", "'nothing' is no second stack"),
        ("jax==0.1", "has no package 'jax'"),
        ("image:nothing", "image 'nothing' is not in docker/images.toml"),
        ("image:cpu", "'image:cpu' is what image 'cpu' has"),
        (str(ROOT / "README.md"), "'README.md' is no lock"),
    ],
)
def test_what_cannot_be_a_second_stack_is_refused_in_a_sentence(words, said):
    with pytest.raises(GpudynoError, match=said):
        second_stack(ROOT, Settings(against=(words,)), IMAGE, IMAGES.image)


def test_beside_an_interpreter_of_the_user_s_own_is_a_variable_or_another_interpreter():
    def second(word: str):
        return second_stack(ROOT, Settings(python="python3", against=(word,)), IMAGE, IMAGES.image)

    assert second("env:A=1").variables == {"A": "1"}
    other = second(f"python:{sys.executable}")
    assert other.python == sys.executable
    assert other.named == f"python:{platform.python_version()}", "its folder may name a person"
    with pytest.raises(PlanError, match="--python takes an interpreter as it is"):
        second("torch==2.12.1")


def test_several_words_are_read_out_of_one_option_and_a_value_keeps_its_comma(tmp_path):
    given = "torch==2.12.1, env:ALLOC=a:1,b:2,env:B=c"
    asked = load_settings(tmp_path, {}, {"against": given}).against
    assert asked == ("torch==2.12.1", "env:ALLOC=a:1,b:2", "env:B=c")


def test_a_line_s_trials_are_chosen_for_both_and_a_budget_drops_pairs_whole(tmp_path):
    root = clone.make(tmp_path, repeats=6)
    setup = alternating(root)
    setup = replace(setup, settings=setup.settings.model_copy(update={"budget": "1m"}))
    chosen = choose_trials(setup)
    assert set(Counter(item.twins for item in chosen.planned).values()) == {2}
