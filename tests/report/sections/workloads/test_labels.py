from __future__ import annotations

from report.comparisons.cells import cells_of
from report.sections.workloads import labels
from tests.helpers import records_frameworks as frameworks
from tests.helpers.trial_tables import table


def trained(framework: str, **told):
    areas = told.pop("areas", {"Edema": 0.8, "Hernia": 0.9})
    whole = None if None in areas.values() else sum(areas.values()) / len(areas)
    changes = {"quality_name": "auc", "test_quality": whole, "test_qualities": areas}
    return frameworks.runs(framework, 0.3, repeats=2, changes=changes, **told)


def shown(*records):
    return labels.table(cells_of(table(one for each in records for one in each)))


def test_each_label_has_a_line_with_the_mean_of_each_framework_s_runs_and_the_mean_of_all_is_the_last():
    found = shown(trained("pytorch", data="real"), trained("chainer", data="real", areas={"Edema": 0.7}))
    assert found is not None
    assert [column.partition("\n")[0] for column in found.columns] == [
        "Label",
        "Chainer, fair/1, fp32-ieee",
        "PyTorch, fair/1, fp32-ieee",
    ]
    assert found.rows == (
        ("Edema", "0.700", "0.800"),
        ("Hernia", "–", "0.900"),
        (labels.MEAN, "0.700", "0.850"),
    )
    assert all("2 runs" in column and "generated" not in column for column in found.columns[1:])


def test_a_label_that_no_test_image_has_gives_a_dash_and_generated_images_are_said():
    found = shown(trained("pytorch", data="generated", areas={"Edema": 0.8, "Hernia": None}))
    assert found is not None
    assert found.rows == (("Edema", "0.800"), ("Hernia", "–"), (labels.MEAN, "–"))
    assert found.columns[1].endswith("2 runs, 1 epoch, generated data")


def test_nothing_is_shown_of_trials_that_were_not_tested_by_label():
    assert shown(frameworks.runs("pytorch", 0.3, repeats=2)) is None
