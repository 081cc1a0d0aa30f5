"""Pins, the choice of an image, and the commands that make one."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import NoDevice, NoEngine, PlanError, UserError
from harness.image.catalog import Image, choose, load_images
from harness.image.lock import differences, lock_packages, normal_name
from harness.image.spec import ApexPart, BuildSpec, docker_build_argv, spec, venv_name, venv_steps
from tests.helpers import ROOT
from tests.helpers.checks import golden

REVISION = "0123456789abcdef0123456789abcdef01234567"
IMAGES = load_images(ROOT)
NAMES = tuple(IMAGES.images)
OF_TODAY = tuple(name for name, image in IMAGES.images.items() if not image.by_name_alone)


def lines(argv: tuple[str, ...], what: BuildSpec) -> str:
    """One argument a line; what changes with each new lock is left out."""
    text = "\n".join(argv) + "\n"
    for found, shown in ((what.tag, f"gpudyno-{what.image}:<hash>"), (what.lock_sha256, "<lock>")):
        text = text.replace(found, shown)
    return text.replace(str(ROOT), "<clone>")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with docker/ alone, to be changed."""
    shutil.copytree(ROOT / "docker", tmp_path / "docker")
    return tmp_path


def change(root: Path, file: str, before: str, after: str) -> None:
    """Replaces one text in one file below docker/."""
    path = root / "docker" / file
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def tag(root: Path, name: str = "cuda", **options: object) -> str:
    """The tag that a clone's image would get."""
    return spec(load_images(root).image(name), root=root, revision=REVISION, **options).tag


@pytest.mark.parametrize("name", NAMES)
def test_the_command_that_builds_an_image_is_this(name: str):
    what = spec(IMAGES.image(name), root=ROOT, revision=REVISION)
    argv = docker_build_argv(what, client="docker", iidfile=Path("/run/iid"), buildx=True)
    golden(f"image_{name}.txt", lines(argv, what))


def test_a_build_on_a_substituted_base_behind_a_proxy_is_this(tmp_path: Path):
    secrets = {name: tmp_path / name for name in ("proxy", "pipconf", "ca", "aptconf")}
    for path in secrets.values():
        path.touch()
    what = spec(
        IMAGES.image("cuda"),
        root=ROOT,
        revision=None,
        base="mirror.example/debian:bookworm",
        apex="extensions",
        secrets=secrets,
        network="host",
    )
    argv = docker_build_argv(what, client="/usr/bin/podman", iidfile=Path("/run/iid"), buildx=False)
    golden("image_cuda_podman.txt", lines(argv, what).replace(str(tmp_path), "<secrets>"))


def test_a_docker_client_without_buildx_builds_with_plain_build():
    what = spec(IMAGES.image("cpu"), root=ROOT, revision=REVISION)
    argv = docker_build_argv(what, client="/usr/bin/docker", iidfile=Path("/run/iid"), buildx=False)
    assert argv[:4] == ("/usr/bin/docker", "build", "--progress", "plain")
    assert not {"buildx", "--load", "--provenance=false", "--metadata-file"} & set(argv)


def _change_line(file: str, before: str, after: str) -> Callable[[Path], None]:
    return lambda root: change(root, file, before, after)


@pytest.mark.parametrize(
    "ingredient",
    [
        pytest.param(_change_line("cuda/Dockerfile", "g++", "clang"), id="Dockerfile"),
        pytest.param(_change_line("steps.sh", "--quiet", "--quiet --quiet"), id="steps"),
        pytest.param(_change_line("cuda/lock.txt", "timm==1.0.31", "timm==1.0.30"), id="lock"),
        pytest.param(
            _change_line("images.toml", 'base = "debian:bookworm-slim"', 'base = "debian:bookworm"'),
            id="base",
        ),
        pytest.param(_change_line("images.toml", "sha256:abd67ffc", "sha256:abd67ffd"), id="base digest"),
        pytest.param(_change_line("images.toml", "e13873de", "e13873df"), id="Apex's commit"),
        pytest.param(
            _change_line("images.toml", "github.com/NVIDIA", "github.com/other"), id="Apex's address"
        ),
        pytest.param(_change_line("images.toml", '"sm_75", ', ""), id="architectures"),
    ],
)
def test_a_tag_changes_with_every_ingredient(clone: Path, ingredient: Callable[[Path], None]):
    _drop_cpu(clone)
    before = tag(clone)
    ingredient(clone)
    assert tag(clone) != before


def _drop_cpu(root: Path) -> None:
    """The cpu image stands first and on the same base, so that a first match would be its own."""
    path = root / "docker" / "images.toml"
    text = path.read_text()
    path.write_text(text[text.index("[images.cuda]") :])


def test_a_tag_changes_with_what_the_build_is_told(clone: Path):
    tags = {
        tag(clone),
        tag(clone, apex="extensions"),
        tag(clone, apex="none"),
        tag(clone, base="debian:bookworm-slim"),
    }
    assert len(tags) == 4


def test_neither_comments_on_pins_nor_the_revision_change_a_tag(clone: Path):
    before = tag(clone)
    change(clone, "images.toml", "[images.cuda]", "# A word on it.\n[images.cuda]")
    assert tag(clone) == before
    other = spec(load_images(clone).image("cuda"), root=clone, revision=None)
    assert other.tag == before


def test_a_substituted_base_has_no_digest_and_says_so():
    what = spec(IMAGES.image("cpu"), root=ROOT, revision=None, base="debian:bookworm-slim")
    assert (what.base, what.base_digest, what.base_substituted) == ("debian:bookworm-slim", None, True)
    assert what.labels["dev.gpudyno.base-substituted"] == "true"
    assert "org.opencontainers.image.base.digest" not in what.labels


def test_an_image_knows_its_own_lock_and_base():
    what = spec(IMAGES.image("cpu"), root=ROOT, revision=None)
    known = what.environment_json()
    assert f'"lock_sha256":"{what.lock_sha256}"' in known
    assert f'"base":"debian:bookworm-slim","base_digest":"{IMAGES.image("cpu").base_digest}"' in known
    assert "https://" not in known


def test_an_unknown_image_is_answered_with_those_there_are():
    with pytest.raises(
        UserError, match=r"image 'tpu' is not in docker/images.toml; take one of cpu, cuda, cuda126, rocm"
    ):
        IMAGES.image("tpu")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('device = "cpu"', 'device = "cpu"\ncolour = "red"', "'images.cpu.colour': unknown key"),
        ("sha256:abd67ffc", "sha256:xyz", "'images.cpu.base_digest': String should match pattern"),
        (
            'base = "debian:bookworm-slim"',
            'base = "debian:latest"',
            "'images.cpu.base': 'debian:latest' names no",
        ),
        (
            'base = "debian:bookworm-slim"',
            'base = "debian"',
            "'images.cpu.base': String should match pattern",
        ),
        ('lock = "cpu/lock.txt"', 'lock = "../lock.txt"', "'images.cpu.lock': String should match pattern"),
        ('device = "cpu"', 'device = "tpu"', "'images.cpu.device': Input should be 'cpu', 'cuda' or 'rocm'"),
        ('device = "cpu"', "device = ", "Invalid value"),
        (
            'lock = "cuda/lock.txt"',
            'lock = "cpu/lock.txt"',
            "images 'cpu' and 'cuda' both name the lock cpu/lock.txt",
        ),
    ],
)
def test_pins_that_cannot_be_meant_are_refused_by_file_and_key(
    clone: Path, before: str, after: str, said: str
):
    change(clone, "images.toml", before, after)
    with pytest.raises(PlanError) as refused:
        load_images(clone)
    assert str(refused.value).startswith("docker/images.toml: ")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_folder_without_pins_is_no_clone(tmp_path: Path):
    with pytest.raises(PlanError, match=r"docker/images.toml is not there; run gpudyno from its clone"):
        load_images(tmp_path)


def test_a_lock_that_is_missing_is_named_with_what_writes_it(clone: Path):
    (clone / "docker" / "cpu" / "lock.txt").unlink()
    with pytest.raises(PlanError, match=r"docker/cpu/lock.txt is not there; write it with 'invoke lock"):
        tag(clone, "cpu")


@pytest.mark.parametrize(
    ("name", "said"), [("password", "'password' is unknown; take one of pipconf"), ("ca", "is not a file")]
)
def test_a_build_secret_that_is_unknown_or_missing_is_refused(tmp_path: Path, name: str, said: str):
    with pytest.raises(UserError, match=said):
        spec(IMAGES.image("cpu"), root=ROOT, revision=None, secrets={name: tmp_path / "none"})


def test_apex_extensions_of_an_image_without_apex_are_refused():
    with pytest.raises(UserError, match="image 'cpu' has no Apex"):
        spec(IMAGES.image("cpu"), root=ROOT, revision=None, apex="extensions")


def test_apex_extensions_without_a_compiler_for_them_are_refused():
    with pytest.raises(UserError, match="image 'cuda126' names no toolkit to compile Apex's extensions"):
        spec(IMAGES.image("cuda126"), root=ROOT, revision=None, apex="extensions")


@pytest.mark.parametrize(
    "capability", ["7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "12.0", "12.1", "sm_90", None]
)
def test_the_cuda_image_serves_cards_from_turing_on(capability: str | None):
    assert choose(IMAGES, "cuda", capability=capability, driver="580.82.07").name == "cuda"


@pytest.mark.parametrize("capability", ["3.7", "sm_35", "11.0", "13.0"])
def test_a_card_that_no_cuda_build_serves_is_told_so(capability: str):
    with pytest.raises(NoDevice) as refused:
        choose(IMAGES, "cuda", capability=capability)
    card = "sm_" + capability.removeprefix("sm_").replace(".", "")
    assert str(refused.value) == (
        f"image 'cuda' serves sm_75, sm_80, sm_86, sm_90, sm_100, sm_120, and this card is {card}; "
        f"image 'cuda126' serves sm_50, sm_60, sm_70, sm_75, sm_80, sm_86, sm_90, and this card is {card}; "
        "take --device cpu, or add an image to docker/images.toml"
    )


@pytest.mark.parametrize(
    ("card", "capability", "driver", "image"),
    [
        ("GTX 980", "5.2", "535.183.01", "cuda126"),
        ("GTX 1080 Ti", "6.1", "570.124.06", "cuda126"),
        ("GTX 1080 Ti", "6.1", "580.65.06", "cuda126"),
        ("V100", "7.0", "535.104.05", "cuda126"),
        ("H100", "9.0", "550.54.15", "cuda126"),
        ("RTX 4090", "8.9", "579.99", "cuda126"),
        ("RTX 4090", "8.9", "580.65.06", "cuda"),
        ("RTX 5090", "12.0", "580.65.06", "cuda"),
    ],
)
def test_a_card_and_its_driver_choose_the_image(card: str, capability: str, driver: str, image: str):
    assert choose(IMAGES, "cuda", capability=capability, driver=driver).name == image


@pytest.mark.parametrize(
    ("capability", "driver", "said"),
    [
        (
            "12.0",
            "570.124.06",
            r"'cuda' needs driver 580 or newer.* has 570\.124\.06; image 'cuda126' serves",
        ),
        ("6.1", "525.53", r"this card is sm_61; image 'cuda126' needs driver 525\.60\.13 or newer"),
        ("8.6", "470.82", r"needs driver 580 or newer.*; image 'cuda126' needs driver 525\.60\.13 or newer"),
    ],
)
def test_a_card_whose_driver_is_too_old_for_its_images_is_told_so(capability: str, driver: str, said: str):
    with pytest.raises(NoDevice, match=said):
        choose(IMAGES, "cuda", capability=capability, driver=driver)


def test_an_image_that_is_named_is_taken_or_refused_and_never_swapped_for_another():
    assert choose(IMAGES, "cuda", capability="8.9", driver="580.65", name="cuda126").name == "cuda126"
    with pytest.raises(NoDevice, match=r"image 'cuda' serves .*, and this card is sm_61; leave --image out"):
        choose(IMAGES, "cuda", capability="6.1", name="cuda")
    with pytest.raises(NoDevice, match="image 'rocm' is for 'rocm' devices, and this line runs on 'cpu'"):
        choose(IMAGES, "cpu", name="rocm")
    with pytest.raises(UserError, match="take one of cpu, cuda, cuda126, rocm"):
        choose(IMAGES, "cpu", name="tpu")


@pytest.mark.parametrize("capability", ["gfx942", "gfx90a:sramecc+:xnack-", "gfx1201", None])
def test_the_rocm_image_serves_the_targets_that_amd_releases(capability: str | None):
    assert choose(IMAGES, "rocm", capability=capability).name == "rocm"


@pytest.mark.parametrize("capability", ["gfx906", "gfx900", "gfx1010", "gfx90"])
def test_a_target_that_rocm_dropped_is_told_so(capability: str):
    with pytest.raises(NoDevice, match=f"and this card is {capability}; "):
        choose(IMAGES, "rocm", capability=capability)


def test_the_cpu_image_is_the_only_one_for_a_machine_without_a_card():
    assert choose(IMAGES, "cpu").name == "cpu"


def test_a_study_s_own_stack_serves_its_card_and_a_cpu_where_it_is_named_and_is_never_chosen():
    assert IMAGES.image("era-2019").by_name_alone
    for device, capability in (("cuda", "7.5"), ("cuda", "6.1"), ("cpu", None)):
        assert choose(IMAGES, device, capability=capability).name != "era-2019"
        taken = choose(IMAGES, device, capability=capability, driver="410.48", name="era-2019")
        assert (taken.name, taken.device) == ("era-2019", device)
    with pytest.raises(
        NoDevice, match=r"image 'era-2019' serves .*, and this card is sm_90; leave --image out"
    ):
        choose(IMAGES, "cuda", capability="9.0", name="era-2019")
    with pytest.raises(
        NoDevice, match="image 'era-2019' is for 'cuda' and 'cpu' devices, and this line runs on"
    ):
        choose(IMAGES, "rocm", name="era-2019")


def test_an_image_that_is_passed_over_is_in_no_answer_to_a_card_that_none_serves(clone: Path):
    change(clone, "images.toml", "name_alone = true", "name_alone = false")
    alone, among = IMAGES, load_images(clone)
    for images, there in ((alone, False), (among, True)):
        with pytest.raises(NoDevice) as refused:
            choose(images, "cuda", capability="3.0")
        assert ("era-2019" in str(refused.value)) == there


@pytest.mark.parametrize("name", ["cpu", "cuda", "era-2019", "chainer", "horovod"])
def test_a_virtual_environment_is_made_by_these_commands(name: str):
    steps = venv_steps(
        IMAGES.image(name),
        root=ROOT,
        venv=Path("/venvs/one"),
        interpreter="python3.11",
        wheelhouse=Path("/wheels"),
    )
    text = "".join(
        f"# {step.label}\n" + "".join(" ".join(argv) + "\n" for argv in step.alternatives) for step in steps
    )
    golden(f"image_venv_{name}.txt", text.replace(str(ROOT), "<clone>"))


def test_without_a_wheelhouse_the_channel_is_tried_first_and_briefly():
    _, framework, packages, _ = venv_steps(
        IMAGES.image("cpu"), root=ROOT, venv=Path("/v"), interpreter="python3"
    )
    channel, index = framework.alternatives
    assert channel[channel.index("--index-url") + 1] == "https://download.pytorch.org/whl/cpu"
    assert channel[channel.index("--retries") + 1] == "1"
    assert not any("http" in word for word in index)
    assert len(packages.alternatives) == 1


def test_an_image_over_a_framework_s_own_base_has_no_virtual_environment():
    with pytest.raises(NoEngine, match="image 'rocm' takes torch and torchvision from its base"):
        venv_steps(IMAGES.image("rocm"), root=ROOT, venv=Path("/v"), interpreter="python3")


def test_the_name_of_a_virtual_environment_changes_with_the_lock(clone: Path):
    image = load_images(clone).image("cpu")
    before = venv_name(image, root=clone)
    change(clone, "cpu/lock.txt", "timm==1.0.31", "timm==1.0.30")
    assert before.startswith("cpu-") and venv_name(image, root=clone) != before


def _requirements(path: Path) -> list[str]:
    """The logical lines of a requirement file."""
    text = path.read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("name", NAMES)
def test_a_lock_holds_hashes_for_every_package_and_no_address(name: str):
    text = (ROOT / "docker" / IMAGES.image(name).lock).read_text()
    found = _requirements(ROOT / "docker" / IMAGES.image(name).lock)
    assert len(found) > (20 if name in OF_TODAY else 5)
    for line in found:
        assert re.fullmatch(r"[a-z0-9-]+==[^\s]+( +--hash=sha256:[0-9a-f]{64})+", line.strip()), line
    assert "://" not in text and "--index" not in text and "--find-links" not in text


def test_the_lock_of_2019_is_that_of_its_time():
    image = IMAGES.image("era-2019")
    locked = lock_packages(ROOT / "docker" / image.lock)
    assert not differences(
        {"torch": "1.0.0", "torchvision": "0.2.1", "fastai": "1.0.41"}, locked, over_base=True
    )
    assert not set(image.left_out) & set(locked)
    assert "setuptools" in locked, (
        "fastai 1 imports it, and the image's environment has no pip that would bring it"
    )


@pytest.mark.parametrize("name", ["mxnet", "chainer"])
def test_a_retired_framework_is_said_to_be_retired_and_why_it_runs_on_no_card(name: str):
    image = IMAGES.image(name)
    assert image.by_name_alone and image.devices == ("cpu",)
    assert any(note.startswith("retired: ") for note in image.notes)
    assert any(note.startswith("no CUDA form: ") for note in image.notes)


@pytest.mark.parametrize("name", ["chainer", "horovod"])
def test_what_builds_a_source_is_locked_and_the_same_in_both_files(name: str):
    image = IMAGES.image(name)
    assert image.sources is not None
    whole, tools = (lock_packages(ROOT / "docker" / lock) for lock in (image.lock, image.sources.lock))
    everything_else = whole.keys() - set(image.sources.packages)
    assert tools == {name: whole[name] for name in image.sources.tools or everything_else}
    assert set(image.sources.packages) <= set(whole)
    dockerfile = (ROOT / "docker" / image.dockerfile).read_text()
    assert dockerfile.index(image.sources.lock) < dockerfile.index(image.lock)


@pytest.mark.parametrize("name", OF_TODAY)
def test_a_lock_is_of_the_family_and_leaves_out_what_it_should(name: str):
    image = IMAGES.image(name)
    locked = lock_packages(ROOT / "docker" / image.lock) | image.from_base
    family = lock_packages(ROOT / "docker" / "cpu" / "requirements.in")
    assert not differences(family, locked, over_base=True)
    assert locked["fastprogress"] < "1.1"
    assert not set(image.left_out) & set(locked)
    assert ("nvidia-ml-py" in locked) == (image.device == "cuda")
    assert any(package.startswith("nvidia-cu") for package in locked) == (name == "cuda")


def test_the_channel_s_part_of_a_lock_is_what_the_pins_say():
    channel = IMAGES.image("cpu").channel
    assert channel is not None
    part = set(_requirements(ROOT / "docker" / channel.lock))
    assert part <= set(_requirements(ROOT / "docker" / IMAGES.image("cpu").lock))
    assert {line.split("==")[0] for line in part} == {package.name for package in channel.packages}
    for package in channel.packages:
        line = next(line for line in part if line.startswith(f"{package.name}=={package.version} "))
        assert tuple(re.findall(r"[0-9a-f]{64}", line)) == package.sha256


def _dockerfile(image: Image) -> str:
    return (ROOT / "docker" / image.dockerfile).read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_dockerfile_pins_all_that_it_takes(name: str):
    text = _dockerfile(IMAGES.image(name))
    steps = (ROOT / "docker" / "steps.sh").read_text()
    assert "latest" not in text and not text.startswith("# syntax")
    assert not re.search(r"pip3? install|curl|wget|https?://|--pre\b", text)
    for install in re.findall(r"run_pip install[^\n]*(?:\\\n[^\n]*)*", steps):
        assert "--require-hashes" in install or "--no-index" in install
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE))
    for source in re.findall(r"^FROM (\S+)", text, re.MULTILINE):
        assert source in stages or source in ("${BASE}", "${TOOLKIT}")


@pytest.mark.parametrize("name", NAMES)
def test_a_dockerfile_is_given_every_argument_that_it_asks_for(name: str):
    image = IMAGES.image(name)
    part: ApexPart = "extensions" if name in ("cuda", "rocm") else "python"
    what = spec(image, root=ROOT, revision=None, apex=part)
    argv = docker_build_argv(what, iidfile=Path("iid"), buildx=True)
    given_ = {word.split("=")[0] for at, word in enumerate(argv) if argv[at - 1] == "--build-arg"}
    assert (
        set(re.findall(r"^ARG (\w+)", _dockerfile(image), re.MULTILINE)) - {"TOOLKIT", "APEX_ARCHITECTURES"}
        <= given_
        <= set(re.findall(r"^ARG (\w+)", _dockerfile(image), re.MULTILINE))
    )


def test_of_apex_the_two_extensions_are_built_that_no_old_architecture_is_asked_for(tmp_path):
    steps = (ROOT / "docker" / "steps.sh").read_text()
    (change,) = re.findall(r"^ *(sed -i .*) /sources/setup\.py$", steps, re.MULTILINE)
    made = "from types import SimpleNamespace as Part\n"
    made += "ext_modules = [Part(name=n) for n in ('apex_C', 'amp_C', 'syncbn', 'mlp_cuda')]\n"
    made += "def setup(ext_modules): print(*(part.name for part in ext_modules))\n"
    (tmp_path / "setup.py").write_text(made + "setup(\n    ext_modules=ext_modules,\n)\n")
    subprocess.run(["sh", "-c", f"{change} setup.py"], cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, "setup.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["apex_C", "amp_C"]


VERSIONS = st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){0,2}", fullmatch=True)
PACKAGES = st.dictionaries(st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True), VERSIONS, max_size=8)


@given(PACKAGES, st.sampled_from(["", "+cpu", "+cu130"]))
def test_an_environment_that_is_its_lock_differs_in_nothing(packages: dict[str, str], build: str):
    assert differences(packages, {name: version + build for name, version in packages.items()}) == ()


@given(PACKAGES, PACKAGES)
def test_every_difference_is_named_once(locked: dict[str, str], installed: dict[str, str]):
    tools = {"pip", "setuptools", "wheel"}
    wrong = {name for name in locked if installed.get(name) != locked[name]}
    extra = installed.keys() - locked.keys() - tools
    named = [clause.split()[0] for clause in differences(locked, installed)]
    assert sorted(named) == sorted(wrong | extra)


@pytest.mark.parametrize(
    ("locked", "installed", "said"),
    [
        ("2.13.0+cpu", "2.13.0", "torch is 2.13.0 where 2.13.0+cpu is locked"),
        ("2.13.0+cpu", "2.13.0+cu130", "torch is 2.13.0+cu130 where 2.13.0+cpu is locked"),
        ("2.13.0", "2.13.1+cpu", "torch is 2.13.1+cpu where 2.13.0 is locked"),
        ("2.13.0", None, "torch 2.13.0 is locked and not installed"),
        (None, "2.13.0", "torch 2.13.0 is installed and not locked"),
    ],
)
def test_what_differs_is_said_in_one_clause(locked: str | None, installed: str | None, said: str):
    pinned, found = ({"torch": version} if version else {} for version in (locked, installed))
    assert differences(pinned, found) == (said,)


def test_what_a_base_brings_besides_is_no_difference():
    assert (
        differences({"torch": "2.13.0"}, {"torch": "2.13.0+rocm10.0.0", "apex": "1.13"}, over_base=True) == ()
    )


def test_names_are_compared_as_the_index_normalises_them():
    assert normal_name("Typing_Extensions") == "typing-extensions"
    assert differences({"nvidia-ml-py": "13.1"}, {"nvidia_ml.py": "13.1"}) == ()
