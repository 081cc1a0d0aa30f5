"""The project's own rules: which way imports point, what the pages say, and what no file may name."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from invoke.collection import Collection

import tasks
from harness import errors
from harness.plan.plan_file import Measure, Plan
from harness.record import Record
from harness.settings import Settings
from report.expected.figures import PublishedRow
from tests.helpers import ROOT

DOCS = ROOT / "docs"
MOST_MODULES = 15
REPORT_MAY_IMPORT = {"errors", "record", "summary"}
FRAMEWORKS = {
    "torch",
    "torchvision",
    "fastai",
    "timm",
    "apex",
    "tensorflow",
    "keras",
    "mxnet",
    "chainer",
    "horovod",
}

ARCHITECTURE = (DOCS / "architecture.md").read_text(encoding="utf-8")
HOST_SIDE = {"commands", "harness", "report"}
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")])
VERBS = {name.replace("-", "_"): task for name, task in Collection.from_module(tasks).tasks.items()}
ARGUMENTS = {name: task.get_arguments() for name, task in VERBS.items()}
"""Read once: a task gives its helps away with the first of its arguments."""


@functools.cache
def tracked() -> tuple[Path, ...]:
    """What git knows of, and what it would take in; all files where this is no clone."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git clone")
    found = tuple(path for name in listed.stdout.split("\0") if (path := ROOT / name).is_file() and name)
    assert found, "git lists no file"
    return found


def modules(*folders: str) -> list[Path]:
    found = {folder: sorted((ROOT / folder).rglob("*.py")) for folder in folders}
    assert all(found.values()), "a folder that is checked has no module"
    return sorted(path for paths in found.values() for path in paths)


PARTS = ROOT / "workloads" / "parts"
MOST_PARTS = 40


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@functools.cache
def imports(path: Path, *, inner: bool = True) -> set[str]:
    """All that a file may import, `from a import b` as both a and a.b; `inner` counts functions' own too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree) if inner else tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            found |= {name.value for name in node.args[:1] if isinstance(name, ast.Constant)}
    return found


def rooms(path: Path, package: str) -> set[str]:
    """The modules and packages right below `package` that a file imports."""
    return {name.split(".")[1] for name in imports(path) if name.startswith(f"{package}.")}


@functools.cache
def sides() -> list[list[set[str]]]:
    """For report and harness, the tiers of the architecture page's diagram: each imports from later ones."""
    diagram = re.search(r"^```mermaid\n(.*?)^```", ARCHITECTURE, re.S | re.M)
    assert diagram, "docs/architecture.md has no diagram"
    chains = re.findall(r"^ *([a-z_ &]+(?:-->[a-z_ &]+){2,})$", diagram[1], re.M)
    return [[set(tier.replace(" ", "").split("&")) for tier in chain.split("-->")] for chain in chains]


def below(room: str) -> set[str]:
    """The rooms that one may import from: those of all tiers after its own."""
    for tiers in sides():
        for place, tier in enumerate(tiers):
            if room in tier:
                return set().union(*tiers[place + 1 :])
    return set()


def room_of(path: Path) -> str:
    side = PARTS if path.is_relative_to(PARTS) else ROOT / path.relative_to(ROOT).parts[0]
    return path.relative_to(side).parts[0].removesuffix(".py")


def test_every_room_stands_in_the_diagram_of_the_architecture_page():
    there = {room_of(path) for path in modules("harness", "report", "workloads/parts")} - {"__init__"}
    assert there == {room for tiers in sides() for tier in tiers for room in tier}


@pytest.mark.parametrize("side", ["harness", "report", "workloads/parts"])
def test_a_room_imports_only_from_rooms_below_its_own(side):
    top = side.rpartition("/")[2]
    upward = {
        name_of(path): rooms(path, top) - below(room_of(path)) - {room_of(path)} for path in modules(side)
    }
    assert not {name: found for name, found in upward.items() if found}


def test_no_folder_holds_more_modules_than_a_person_keeps_in_mind():
    every = [path for path in modules("commands", "harness", "report") if path.name != "__init__.py"]
    # A module of a verb's name needs no place in anybody's mind.
    counts = Counter(path.parent for path in every if path.stem not in VERBS)
    assert not [folder for folder, count in counts.items() if count > MOST_MODULES]


def test_workloads_share_at_most_forty_files():
    assert len([path for path in modules("workloads/parts") if path.name != "__init__.py"]) <= MOST_PARTS


def test_the_report_knows_of_the_harness_only_what_its_input_is():
    known = {name_of(path): rooms(path, "harness") for path in modules("report")}
    assert not {name: found for name, found in known.items() if not found <= REPORT_MAY_IMPORT}


WORKLOADS = {"workloads", *(path.stem for path in modules("workloads"))}
NEVER_IMPORTED = {
    "commands": FRAMEWORKS | WORKLOADS,
    "report": FRAMEWORKS | WORKLOADS,
    "harness": FRAMEWORKS | WORKLOADS | {"commands", "report"},
    "workloads": HOST_SIDE,
}


@pytest.mark.parametrize("side", NEVER_IMPORTED)
def test_a_module_imports_nothing_that_its_side_must_not_know(side):
    tops = {name_of(path): {name.split(".")[0] for name in imports(path)} for path in modules(side)}
    assert not {name: found for name, found in tops.items() if found & NEVER_IMPORTED[side]}


def circles(graph: dict[str, set[str]]) -> Iterator[str]:
    """Modules that import themselves over others; leaves that import nothing left are taken away first."""
    left = {name: set(found) for name, found in graph.items()}
    while ends := {name for name, found in left.items() if not found & left.keys()}:
        left = {name: found for name, found in left.items() if name not in ends}
    yield from left


def test_no_modules_import_each_other_in_a_circle():
    files = {name_of(path): path for path in modules("commands", "harness", "report")}
    graph = {
        name: {found for found in imports(path, inner=False) if found in files and found != name}
        for name, path in files.items()
    }
    packages = {name for name in files if files[name].name == "__init__.py"}
    # A package's own file gathers what its modules define; they may name the package to reach each other.
    for name in graph:
        graph[name] = {one for one in graph[name] if not (one in packages and name.startswith(f"{one}."))}
    assert not list(circles(graph))


def test_no_workloads_and_parts_import_each_other_in_a_circle_by_name_or_by_import_module():
    files = {name_of(path).removeprefix("workloads."): path for path in modules("workloads")}
    graph = {name: (imports(path) & files.keys()) - {name} for name, path in files.items()}
    assert not list(circles(graph))


def test_docker_holds_no_python_file_that_would_hide_the_docker_library():
    assert [path for path in tracked() if path.is_relative_to(ROOT / "docker") and path.suffix == ".py"] == []


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_says_what_it_does_and_what_each_option_means(verb):
    assert VERBS[verb].__doc__
    assert not [argument.name for argument in ARGUMENTS[verb] if not argument.help]


def test_there_are_at_most_seventeen_verbs():
    assert len(VERBS) <= 17
    assert set(tasks.line.verbs) == set(VERBS)


def test_every_option_that_is_a_setting_is_one_of_the_settings():
    assert set(tasks.SETTINGS) <= set(Settings.model_fields)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_stands_in_a_page(verb):
    named = re.compile(rf"\binvoke (?:[\w-]+ )*{verb.replace('_', '-')}\b")
    assert any(named.search(page.read_text(encoding="utf-8")) for page in PAGES)


def test_listing_the_verbs_loads_nothing_heavy():
    script = (
        "import sys\n"
        "from invoke.main import program\n"
        "program.run(['invoke', '--list'], exit=False)\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "doctor" in done.stdout
    loaded = {name.split(".")[0] for name in done.stderr.split()}
    heavy = {"docker", "jinja2", "matplotlib", "numpy", "pandas", "pydantic", "requests", "rich", "scipy"}
    assert not loaded & heavy


def test_the_hooks_before_a_commit_are_programs_of_the_environment_and_ask_no_forge():
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"repo: *(.+)", text) == ["local"]
    entries = re.findall(r"entry: *(\S+)", text)
    assert entries and text.count("- id:") == len(entries) == text.count("language: system")
    assert all(entry.startswith(".venv/bin/") for entry in entries)


@pytest.mark.parametrize(
    ("page", "fields"),
    [
        ("running.md", Settings.model_fields),
        ("running.md", {*Plan.model_fields, *Measure.model_fields} - {"sha256", "own"}),
        ("data.md", {*Record.model_fields, *PublishedRow.model_fields}),
    ],
    ids=["settings", "plan", "record and table"],
)
def test_every_setting_key_of_a_plan_part_of_a_record_and_column_stands_in_its_page(page, fields):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert not [name for name in fields if f"`{name}`" not in text]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.GpudynoError, 1),
        (errors.UserError, 2),
        (errors.GateError, 3),
        (errors.MachineError, 4),
    ],
)
def test_the_page_on_running_has_the_exit_code_of_each_kind_of_error(error, code):
    assert error.exit_code == code
    assert re.search(rf"^\| {code} \|", (DOCS / "running.md").read_text(encoding="utf-8"), re.M)


def test_the_changelog_names_the_version_first():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changes, re.M)
    assert newest and newest[1] == version
    section = changes[newest.end() :].partition("\n## ")[0]
    assert re.findall(r"^### (\w+)", section, re.M) == ["Methodology", "Features", "Fixes"]


# In pieces, so that this file holds none of them.
REGISTRIES = (
    "pypi." + "org",
    "python" + "hosted.org",
    "npmjs." + "org",
    "anaconda." + "org",
    "crates." + "io",
)
ELSEWHERE = ("../" + "shared", "/" + "work/main", "/" + "work/shared", "/" + "root/torch", "/" + "root/real")


def test_no_file_names_a_package_registry_or_a_folder_of_one_machine():
    known = re.compile("|".join(map(re.escape, (*REGISTRIES, *ELSEWHERE))))
    found = []
    for path in tracked():
        if path.relative_to(ROOT).parts[0] == ".ci":
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{path.relative_to(ROOT)}: {word}" for word in known.findall(text)]
    assert not found


def actions() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        for line in re.findall(r"uses: *(.+)$", path.read_text(encoding="utf-8"), re.M):
            yield path.name, line


@pytest.mark.parametrize(("workflow", "action"), list(actions()))
def test_every_action_is_pinned_by_its_commit_and_says_which_release_that_is(workflow, action):
    assert re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.stem
)
def test_a_workflow_starts_with_no_permission_at_all_and_every_job_ends(path):
    text = path.read_text(encoding="utf-8")
    assert "\npermissions: {}\n" in text
    assert "\nconcurrency:\n" in text
    assert text.count("runs-on:") == text.count("timeout-minutes:")


def test_what_is_contributed_is_never_checked_out_and_whoever_reads_it_can_write_nothing():
    text = (ROOT / ".github" / "workflows" / "results.yml").read_text(encoding="utf-8")
    assert "ref: ${{ github.event.pull_request.base.sha }}" in text
    assert text.count("ref:") == text.count("actions/checkout@") == 1
    assert "write" not in text.split("jobs:")[1]
    assert not re.search(r"run:.*\$\{\{", text), "an expression in a shell line is run as its text says"
