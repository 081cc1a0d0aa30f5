from __future__ import annotations

import atexit
import base64
import hashlib
import itertools
import re
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from report.analysis import Question
from report.page import build as page
from report.page import render
from report.trials import reading
from tests.helpers import ROOT, records_hostile
from tests.helpers import records_builder as build
from tests.helpers.checks import golden
from tests.helpers.page_reader import LOADING, Read, read
from tests.helpers.purchase_builder import FILE
from tests.helpers.records_quick import quick_look

REPOSITORY = ROOT
NOW = datetime(2026, 2, 1, 12, 0, tzinfo=UTC)

CLAIMS = """
[defaults]
study = "004"
workload = "cifar_fastai"
protocol = "published/1"
runs = 1
source = "constructed for a test"

[[claims]]
id = "constructed-seconds"
kind = "absolute"
metric = "protocol_seconds"
of = { card = "RTX 2080 Ti", model = "resnet50", precision = "fp32-ieee", batch_size = 98 }
value = 2400.0
unit = "s"
half_digit = 0.5
epochs = 30

[[claims]]
id = "constructed-order"
kind = "order"
metric = "protocol_seconds"
of = { model = "resnet50", precision = "fp16-master", batch_size = 164 }
over = { model = "resnet50", precision = "fp32-ieee", batch_size = 98 }
relation = "less"
card_class = "any"
unit = "s"
epochs = 30
words = "A claim constructed for a test: FP16 is faster."
"""


def small(root: Path) -> Path:
    """One card with two precisions and a failure, another card beside it, and two claims."""
    records = build.two_cards()
    build.write(root, [record for record in records if record.trial.asked.workload == "cifar_fastai"])
    claims = root / "results" / "claims"
    claims.mkdir(parents=True)
    (claims / "constructed.toml").write_text(CLAIMS)
    return root


def two_cards(root: Path) -> Path:
    return published(build.write(root, build.two_cards()))


def quick(root: Path) -> Path:
    return build.write(root, quick_look())


def one_record(root: Path) -> Path:
    return build.write(root, quick_look()[:1])


def empty(root: Path) -> Path:
    return root


def published(root: Path) -> Path:
    (root / "results").mkdir(exist_ok=True)
    shutil.copytree(REPOSITORY / "results" / "claims", root / "results" / "claims")
    shutil.copy(REPOSITORY / "results" / "cards.toml", root / "results")
    return root


def with_quotes(root: Path) -> Path:
    build.write(root, build.two_cards())
    (root / "purchase.toml").write_text(FILE)
    return root


def with_quotes_and_studies(root: Path) -> Path:
    return published(with_quotes(root))


def odd(root: Path) -> Path:
    return build.write(root, records_hostile.odd_numbers())


PAGES: dict[str, Callable[[Path], Path]] = {
    "small": small,
    "two cards": two_cards,
    "quick": quick,
    "one record": one_record,
    "empty": empty,
    "published": published,
    "hostile": records_hostile.write,
    "odd": odd,
    "with quotes": with_quotes,
    "with quotes and studies": with_quotes_and_studies,
}


@cache
def built(kind: str, *, png: bool = False, **options: Any) -> page.WrittenPage:
    """The page, which is written once for all tests; its constructed summaries are believed."""
    folder = Path(tempfile.mkdtemp(prefix="gpudyno-page-"))
    atexit.register(shutil.rmtree, folder)
    root = folder / "root"
    root.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "other_summary", lambda record, anew: "")
        return page.build(PAGES[kind](root), folder / "out", Question(NOW, **options), png=png)


def html(kind: str, **options: str) -> str:
    return built(kind, **options).html.read_text()


@pytest.fixture(scope="module", params=PAGES)
def any_page(request: pytest.FixtureRequest) -> Read:
    return read(html(request.param))


def test_a_small_set_of_records_gives_exactly_this_page():
    written = built("small")
    golden("page.html", undrawn(written.html.read_text()))
    golden("page.md", written.markdown.read_text())


def undrawn(html: str) -> str:
    """A page whose drawings keep title and description: the rest depends on matplotlib's version."""
    drawing = re.compile(r"(<svg\b[^>]*>(?:<title.*?</title><desc.*?</desc>)?).*?</svg>", re.S)
    return drawing.sub(r"\1</svg>", html)


def test_the_page_loads_nothing_and_runs_no_handler(any_page: Read):
    for element in any_page.elements:
        assert element.tag not in ("iframe", "object", "embed", "link", "img", "base", "form")
        assert not LOADING & element.attributes.keys()
        assert not any(name.startswith("on") or name == "style" for name in element.attributes)
        for name in ("href", "xlink:href"):
            assert element.attributes.get(name, "#").startswith("#")


def test_the_policy_allows_the_style_sheet_and_scripts_of_the_page_alone():
    text = html("two cards")
    sheet = text.split("<style>")[1].split("</style>")[0]
    scripts = [part.split("</script>")[0] for part in text.split("<script>")[1:]]
    digest, *others = (
        base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (sheet, *scripts)
    )
    allowed = "".join(f" 'sha256-{other}'" for other in others)
    assert (
        f"default-src 'none'; style-src 'sha256-{digest}'; script-src{allowed}; "
        "base-uri 'none'; form-action 'none'" in text
    )
    assert "url(" not in sheet and "@import" not in sheet


def test_every_id_stands_once_and_every_link_leads_to_one(any_page: Read):
    ids = [element.attributes["id"] for element in any_page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in any_page.elements:
        for name in ("href", "aria-labelledby"):
            for target in element.attributes.get(name, "").replace("#", "").split():
                assert target in ids


def test_headings_go_down_one_level_at_a_time_from_a_single_first(any_page: Read):
    levels = [int(element.tag[1]) for element in any_page.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_every_drawing_has_a_title_and_a_description_in_words(any_page: Read):
    named = {element.attributes.get("id", ""): element.tag for element in any_page.all("title", "desc")}
    for drawing in any_page.all("svg"):
        title, described = drawing.attributes["aria-labelledby"].split()
        assert (named[title], named[described]) == ("title", "desc")
        assert drawing.attributes["role"] == "img"


def test_every_drawing_stands_once_for_the_desk_and_once_narrow_unless_it_is_narrow_already(any_page: Read):
    kinds = [drawing.attributes["class"] for drawing in any_page.all("svg")]
    assert kinds.count("chart desk") == kinds.count("chart narrow")
    assert set(kinds) <= {"chart desk", "chart narrow", "chart"}
    for drawing in any_page.all("svg"):
        widest = 540 if drawing.attributes["class"] == "chart desk" else 328
        assert float(drawing.attributes["width"]) <= widest


def test_every_table_has_a_caption_and_scoped_headings(any_page: Read):
    assert len(any_page.all("caption")) == len(any_page.all("table"))
    assert all(element.attributes.get("scope") in ("col", "row") for element in any_page.all("th"))


def test_every_chart_stands_with_its_runs_a_table_and_the_way_to_measure_it_again():
    articles = html("two cards").split("<article")[1:]
    assert articles
    for article in articles:
        shown = read("<article" + article.split("</article>")[0] + "</article>")
        assert shown.all("svg") and shown.all("table")
        assert "Runs" in shown.text("th") and "invoke run --plan constructed" in shown.text("pre")
        assert "results/2026-01-31/" in shown.text("code")


def test_strings_from_records_are_shown_and_do_nothing_else():
    written = built("hostile")
    text = written.html.read_text()
    assert text.count("<script") == len(render.SCRIPTS) and "<img" not in text
    assert "&lt;script&gt;alert(1)" in text
    for character in "\u202e\u202c\u2067\u2069\x1b\x00":
        assert character not in text + written.markdown.read_text()
    for path in written.charts:
        assert "<script" not in path.read_text()
    assert "<script" not in written.markdown.read_text()


def test_a_string_of_ten_thousand_letters_is_cut():
    assert "L" * 300 not in html("hostile")


def test_charts_beside_the_markdown_are_whole_files_on_white_paper_under_their_titles():
    written = built("two cards")
    assert written.charts
    linked = re.findall(r'<img src="charts/([^"]+)"', written.markdown.read_text())
    assert sorted(linked) == sorted(path.name for path in written.charts)
    for path in written.charts:
        drawing = read(path.read_text())
        heading = next(text for place, text in drawing.texts if "text" in place)
        assert drawing.text("title").startswith(heading) and "var(--" not in path.read_text()
        paper, *_ = drawing.all("rect")
        assert paper.attributes["fill"] == "#ffffff"


def test_charts_that_are_asked_for_in_pixels_lie_beside_the_others_and_stand_in_the_markdown():
    written = built("one record", png=True)
    ends = {
        ending: {path.stem for path in written.charts if path.suffix == ending} for ending in (".svg", ".png")
    }
    assert ends[".svg"] == ends[".png"] != set()
    linked = re.findall(r'<img src="charts/([^"]+)"', written.markdown.read_text())
    assert {Path(name).suffix for name in linked} == {".png"}
    for path in written.charts:
        if path.suffix == ".png":
            assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_building_again_leaves_no_chart_of_an_older_page(tmp_path: Path):
    (tmp_path / "root").mkdir()
    (tmp_path / "nothing").mkdir()
    page.build(small(tmp_path / "root"), tmp_path / "out", Question(NOW))
    written = page.build(tmp_path / "nothing", tmp_path / "out", Question(NOW))
    assert written.charts == () and not list((tmp_path / "out" / "charts").iterdir())


def test_an_empty_folder_gives_a_page_that_says_so():
    assert "Nothing has been measured here yet" in read(html("empty")).text("h1")


def test_a_session_of_failures_alone_leads_with_them_and_with_the_command_to_measure_again(tmp_path: Path):
    tried = build.two_cards()[0]
    failed = build.record(
        tried.trial, None, on=tried.machine, session=tried.session, failure=build.out_of_memory()
    )
    published(build.write(tmp_path / "root", [failed]))
    written = page.build(tmp_path / "root", tmp_path / "out", Question(NOW))
    shown = read(written.html.read_text(encoding="utf-8"))
    assert shown.text("h1") == "No trial of this session gave a figure to show: 1 of 1 failed."
    first, then, *_ = written.markdown.read_text(encoding="utf-8").split("\n## ")
    assert "1 trial of 1: out of memory" in first and "invoke run --plan" in first
    assert then.startswith("What ran on what?")


def test_published_numbers_alone_are_drawn_and_none_is_judged():
    shown = read(html("published"))
    assert "none of them judged" in shown.text("h1")
    assert shown.text("figcaption").startswith("Bhutani 2019: time-scaled")
    assert "RTX 2080 Ti fp16-master" in shown.text("svg")
    assert "can be checked" not in shown.text("p")
    assert "reproduced" not in shown.text("td")


def test_a_page_of_published_numbers_alone_is_small_enough_to_mail():
    assert len(html("published").encode()) < 480_000


def test_a_study_in_which_nothing_was_measured_is_drawn_once_and_folded():
    section = html("two cards").split('<h2 id="claims">')[1].split("</section>")[0]
    folded = re.findall(r"<details>.*?</details>", section, re.S)
    drawn = [svg for each in folded for svg in re.findall(r'<svg[^>]*class="([^"]+)"', each)]
    assert set(drawn) == {"chart"} and any("1 drawing" in each for each in folded)
    assert "tensorcore 2022: time-scaled" not in re.sub(r"<details>.*?</details>", "", section, flags=re.S)


@pytest.mark.parametrize(
    ("kind", "leading"), [("two cards", "study leading"), ("with quotes and studies", "panels leading")]
)
def test_page_one_has_the_study_drawn_again_or_for_a_buyer_the_costs(kind: str, leading: str):
    text = html(kind)
    drawn, asked, below = (
        text.index(f'class="{leading}"'),
        text.index('class="questions"'),
        text.index("<nav"),
    )
    assert drawn < asked < below and text.count(' leading"') == 1
    shown = read(text)
    study = shown.text("svg")
    assert "Constructed Card A fp16-master" in study and "RTX 2060 fp16-master" in study


def test_the_claims_begin_with_how_many_can_be_checked_and_fold_away_what_cannot():
    text = html("two cards").split('<h2 id="claims">')[1].split("</section>")[0]
    assert re.search(r"Of \d+ published claims \d+ can be checked on this machine: \d+ holds?, \d+ do", text)
    open_tables = re.sub(r"<details>.*?</details>", "", text, flags=re.S)
    assert "Not comparable here" in text and "Not comparable here" not in open_tables


def test_one_record_has_no_interval_and_says_so():
    shown = read(html("one record"))
    assert "one run" in shown.text("td")
    assert "weak: 1 run" in shown.text("li")


def test_generated_data_is_named_in_the_answer_and_at_its_figure():
    text = html("quick")
    assert "GENERATED" in read(text).text("h1")
    article = text.split("<article")[1].split("</article>")[0]
    for label in (
        "GENERATED DATA",
        "random weights, speed only",
        "software not pinned",
        "too short to rank",
        "weak",
        "projected",
    ):
        assert label in article


def test_a_failed_trial_keeps_its_place_in_chart_table_and_list_and_an_older_record_s_log_is_not_shown():
    shown = read(html("small"))
    assert "does not fit" in shown.text("svg")
    assert "does not fit" in shown.text("table")
    assert "torch.OutOfMemoryError" not in html("small")


def test_a_date_ahead_of_the_page_is_named_and_a_figure_below_zero_refused():
    shown = read(html("odd"))
    assert "1 record dated after this page was written." in shown.text("li")
    assert "its protocol seconds reads -5, which no run can give" in shown.text("li")


def test_a_baseline_that_is_not_there_is_said_to_be_missing():
    shown = read(html("small", baseline="Card Z"))
    assert "The baseline 'Card Z' does not stand in ResNet-50" in shown.text("li")


def test_a_baseline_fixes_what_one_means():
    shown = read(html("small", baseline="Card A"))
    assert "Constructed Card A fp32-ieee = 1.00; less is better" in shown.text("figcaption")


def test_the_named_session_leads_the_page():
    shown = read(html("two cards", session="20260130-bbbbbb"))
    assert "session 20260130-bbbbbb" in shown.text("p")


def test_a_record_that_cannot_be_read_is_named_on_the_page(tmp_path: Path):
    root = small(tmp_path)
    next(root.glob("results/*/*/cifar*.json")).write_text('{"record": 1')
    written = page.build(root, tmp_path / "out", Question(NOW))
    assert len(written.warnings) == 1
    assert "the file is cut short or not JSON" in read(written.html.read_text()).text("li")
