"""Page one: what disturbed the runs, and the line that measures again."""

from __future__ import annotations

from report.sections.view import PageView
from tests.report.comparisons.test_groups import series, view


def answer(shown: PageView, heading: str) -> tuple[str, ...]:
    (asked,) = [asked for asked in shown.questions if asked.heading == heading]
    return asked.sentences


def test_a_busy_machine_stands_under_how_sure_and_a_quiet_one_is_not_named():
    quiet = series()
    causes = ("busy-machine: 2.0 of 2 cores worked before the trial began",)
    busy = [
        record.model_copy(
            update={"summary": record.summary.model_copy(update={"verdict": "warn", "causes": causes})}
        )
        for record in quiet
    ]
    said = f"{len(busy)} of {len(busy)} measured trials: the machine did other work before it began."
    assert said in answer(view(busy), "How sure is this?")
    assert not any("other work" in sentence for sentence in answer(view(quiet), "How sure is this?"))


def test_the_line_that_measures_again_names_the_environment():
    records = series()
    within = records[0].environment.model_copy(update={"image": "era-2019"})
    own = [record.model_copy(update={"environment": within}) for record in records]
    (again,) = answer(view(own), "How is it measured again?")
    assert again.startswith(f"`invoke run --plan {records[0].plan} --image era-2019 --new-session`")
