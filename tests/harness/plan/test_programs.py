"""A plan whose measures run published programs, and what of their files is refused."""

from __future__ import annotations

import pytest
import tomlkit

from harness.data.datasets import DATASETS
from harness.errors import PlanError
from harness.plan import own_file, plan_file
from harness.plan.plan_file import PlanContext
from tests.helpers import ROOT
from tests.helpers.programs import PLAN, fields, repository


def loaded(folder, text=PLAN, **told):
    there = repository(folder / "repository")
    for name, content in (("plans/mine.toml", text), ("mine/toy.toml", tomlkit.dumps(fields(there, **told)))):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    return plan_file.load_plan(folder, "mine")


def test_a_program_brings_its_images_and_data_unless_the_measure_says_other(tmp_path):
    given = {"data": "tiny-shakespeare", "file": "a/b", "at": "b"}
    found = loaded(tmp_path, data="real", input=given, images=["era-2019"])
    (measure,) = found.measure
    assert (measure.images, measure.data) == (("era-2019",), "tiny-shakespeare")
    assert plan_file.plan_datasets(found, "cpu") == ("tiny-shakespeare",)
    context = PlanContext("cpu", "era-2019", None, {"tiny-shakespeare": "real"}, {})
    trials = [item.trial for item in plan_file.plan_trials(found, context, 1)]
    assert {trial.asked.data for trial in trials} == {"real"}
    assert DATASETS["tiny-shakespeare"].sha256 in own_file.own_file_text(tmp_path, trials[0].asked.file)


@pytest.mark.parametrize("data", ["real", "synthetic"])
def test_a_program_says_whether_what_its_own_tree_trains_on_is_real(tmp_path, data):
    planned = plan_file.plan_trials(loaded(tmp_path, data=data), PlanContext("cpu", "cpu", None, {}, {}), 1)
    assert {item.trial.asked.data for item in planned} == {data}


def test_another_file_of_the_program_makes_other_trials(tmp_path):
    context = PlanContext("cpu", "cpu", None, {}, {})
    first = loaded(tmp_path)
    (tmp_path / "mine" / "toy.toml").write_text((tmp_path / "mine" / "toy.toml").read_text() + "# changed\n")
    both = [
        plan_file.plan_trials(found, context, 1) for found in (first, plan_file.load_plan(tmp_path, "mine"))
    ]
    assert not {item.trial.id for item in both[0]} & {item.trial.id for item in both[1]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (('"toy/1"', '"other/1"'), "its protocol is 'other/1'; write 'toy/1'"),
        (('"program"\nbatch', '"fp32-ieee"\nbatch'), "its precision is its own"),
        (('"host"', '"host"\nlimit = { valid_batches = 1 }'), "nothing can hold it to 'valid_batches'"),
        (("toy.toml", "toy.py"), "needs a file that ends in .toml"),
        (("mine/toy.toml", "mine/none.toml"), "there is no file 'mine/none.toml' in the clone"),
    ],
)
def test_a_measure_that_does_not_fit_its_program_is_refused(tmp_path, changes, words):
    with pytest.raises(PlanError, match=words):
        loaded(tmp_path, PLAN.replace(*changes))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"figure": "run", "repeats": 2}, "prints one figure a run, and 2 are asked for; ask for 3"),
        ({"command": ["python", "{wrong}"]}, "'wrong' is none of batch_size"),
        ({"on": {"cpu": {"options": {"wrong": 1}}}}, "'on' has the option 'wrong'"),
        ({"read": {"lines": "(?P<step>"}}, "'read.lines': it is no pattern"),
        ({"read": {"lines": "(?P<loss>.)"}}, "'lines' has none of seconds, milliseconds"),
        ({"read": {"lines": "(?P<stepp>.)"}}, "its group 'stepp' is none of"),
        ({"read": {"file": "x.json"}}, "it needs either 'lines' or 'file'"),
        ({"commit": "main"}, "'commit'"),
        ({"forge": "ext::sh"}, "'forge'"),
        ({"path": "../elsewhere"}, "'path'"),
        ({"unknown": 1}, "'unknown': unknown key"),
    ],
)
def test_a_program_s_file_that_cannot_be_meant_is_refused_by_its_key(tmp_path, told, words):
    repeats = told.pop("repeats", 3)
    with pytest.raises(PlanError, match=words) as refused:
        loaded(tmp_path, PLAN.replace("repeats = 3", f"repeats = {repeats}"), **told)
    assert "\n" not in str(refused.value)


def test_every_program_here_is_read_and_named_as_its_file():
    paths = sorted((ROOT / "workloads" / "programs").glob("*.toml"))
    programs = [own_file.read_program(path.read_bytes(), path.name) for path in paths]
    assert paths
    assert [program.name for program in programs] == [path.stem for path in paths]
