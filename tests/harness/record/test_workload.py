import pytest

from harness.record.vocabulary.workload import FOLDER, read_workload

PROTOCOLS = sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", [name for name in PROTOCOLS if name not in ("ceilings", "custom")])
def test_a_workload_s_file_says_what_the_page_calls_it(name: str):
    found = read_workload(name)
    assert found and found.title and found.about


def test_what_is_no_file_here_declares_nothing_and_the_retired_ones_say_so():
    assert read_workload("../parts/trial") is read_workload("never_there") is None
    retired = read_workload("cifar_cnn")
    assert retired and "retired" in retired.title


def test_published_figures_of_the_resnets_are_of_their_own_size():
    found = read_workload("cifar_fastai")
    assert found and found.image_size == 224
