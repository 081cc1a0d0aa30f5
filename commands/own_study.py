"""A table of published figures, in whatever columns, becomes a study of claims and a plan that judges it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import tomlkit

from harness.errors import UserError
from harness.plan import names, plan_file
from harness.record.published.cards import card_family, find_card, load_cards
from harness.record.published.claim import NOT_PUBLISHED
from harness.record.published.claim_set import FOLDER, read_claims, suggest_name
from harness.record.vocabulary.precision import Precision

COLUMNS = {
    "epochs": r"^epochs$",
    "workload": r"workload|task|data.?set",
    "batch_size": r"batch|^bs$",
    "image_size": r"pixel|\bpx\b|resolution|image.?size",
    "sequence_length": r"\bseq|context",
    "gpus": r"gpus|#|how many",
    "layout": r"layout|memory.?format",
    "precision": r"precision|dtype|\bamp\b|mixed",
    "card": r"card|gpu|device|accelerator|hardware|chip",
    "value": r"value|through|speed|/ ?s|per.?s|\bips\b|rate|result|images|imgs?\b|tokens|samples|"
    r"\bms\b|time|epoch|minutes|hours|accuracy|top.?1",
    "model": r"model|net|arch",
}
"""Each field, and what the heads of its columns are like; the first that fits, once."""
METRICS = (
    (r"\bms\b", "step_seconds", "s", 0.001),
    (r"\bmin.*epoch|epoch.*\bmin", "epoch_seconds", "s", 60.0),
    (r"epoch", "epoch_seconds", "s", 1.0),
    (r"hours|\bh\b", "protocol_seconds", "s", 3600.0),
    (r"minutes|\bmin\b", "protocol_seconds", "s", 60.0),
    (r"accuracy|top.?1", "accuracy", "fraction", 0.01),
    ("", "throughput", "images/s", 1.0),
)
"""What the head of a column of figures is like, its metric and unit, and what one of its own is in that."""
TRAININGS = {"cifar_fastai": "cifar-100", "cifar_resnet44": "cifar-10", "mnist_cnn": "mnist"}
"""The workloads that train on a data set, for what only a training has."""
TRAINED = ("epoch_seconds", "protocol_seconds", "accuracy")
DECODERS = re.compile(r'^    "([^"]+)": DecoderShape', re.MULTILINE)
PROCESSOR = re.compile(r"xeon|epyc|core|ryzen|cpu|threadripper|graviton|grace", re.IGNORECASE)
LAYOUTS = {"nchw": "contiguous", "nhwc": "channels_last"}
FIGURE = re.compile(r"\d[\d,]*(\.\d+)?")
AMP = ("amp-fp16", "amp-bf16")
PRECISIONS: Mapping[str, tuple[str, ...]] = {
    **{label: (label,) for label in get_args(Precision)},
    "fp32": ("fp32-default",),
    "float32": ("fp32-default",),
    "tf32": ("fp32-tf32",),
    "amp": AMP,
    "mixed": AMP,
    "fp16": ("amp-fp16", "fp16-master", "pure-fp16"),
    "float16": ("amp-fp16", "fp16-master", "pure-fp16"),
    "half": ("amp-fp16", "fp16-master", "pure-fp16"),
    "bf16": ("amp-bf16", "pure-bf16"),
    "bfloat16": ("amp-bf16", "pure-bf16"),
}
"""What tables call a precision, and which labels that may be."""

FigureWords = dict[str, str]


def write_study(root: Path, path: Path, source: str, settings: Sequence[str]) -> None:
    """Write a study of claims and its plan from a table.

    Raises UserError for a table that cannot be read, and for all that is ambiguous in it, once.
    """
    name = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "figures"
    if not source:
        raise UserError("--from needs the place of publication", remedy="add --source URL")
    heads, rows = _read_rows(path)
    given = {heads.get(left, left): right for left, right in map(_parse_setting, settings)}
    doubts: dict[str, None] = {}
    figures = [_figure(root, row, given, doubts) for row in rows]
    if doubts:
        raise UserError(
            f"'{path}' can be read in several ways:\n  " + "\n  ".join(doubts), remedy="say which"
        )
    texts = {
        root / FOLDER / f"{name}.toml": _claims_text(root, name, source, figures),
        root / "plans" / f"{name}.toml": _plan_text(name, figures),
    }
    if there := next((file for file in texts if file.exists()), None):
        raise UserError(
            f"'{there.relative_to(root)}' is there already", remedy="rename the table or that file"
        )
    try:
        for file, text in texts.items():
            file.write_text(text, encoding="utf-8")
        plan_file.load_plan(root, name)
        if problem := next(
            (each for each in read_claims(root).problems if f"{name}.toml" in str(each)), None
        ):
            raise problem
    except UserError:
        for file in texts:
            file.unlink(missing_ok=True)
        raise
    print(f"written: {', '.join(str(file.relative_to(root)) for file in texts)}: {len(figures)} figures")
    if not any("layout" in row for row in figures):
        print("layout: contiguous is taken, where nothing is said; else --set layout=channels_last")
    print(f"next: invoke plan --plan {name}, then invoke run report --plan {name}")


def _parse_setting(words: str) -> tuple[str, str]:
    left, equals, right = words.partition("=")
    if not equals or not left or not right:
        raise UserError(f"--set {words}: it is no COLUMN=VALUE", remedy="write --set precision=amp-fp16")
    return left.strip().casefold(), right.strip()


def _read_rows(path: Path) -> tuple[dict[str, str], list[FigureWords]]:
    """Return the field that each head is like, and each row by its fields."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"'{path}' cannot be read ({error})", remedy="name a file of comma-separated values"
        ) from None
    head, _, _ = text.partition("\n")
    mark = max(",;\t", key=head.count)
    table = [row for row in csv.DictReader(text.splitlines(), delimiter=mark) if any(row.values())]
    fields = dict(_guess_fields([column for column in table[0] if column], table)) if table else {}
    if "value" not in fields:
        raise UserError(f"'{path}' has no column of figures", remedy="call one 'value', or 'images/s'")
    head = fields["value"].casefold()
    metric, unit, size = next(what for like, *what in METRICS if re.search(like, head))
    said = {"metric": str(metric), "unit": str(unit), "size": str(size)}
    rows = [{field: (row[column] or "").strip() for field, column in fields.items()} | said for row in table]
    heads = {column.casefold(): field for field, column in fields.items()}
    return heads, [row for row in rows if row["value"] not in NOT_PUBLISHED]


def _guess_fields(columns: Sequence[str], table: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    left = list(columns)
    for field, like in COLUMNS.items():
        if column := next((one for one in left if re.search(like, one.casefold())), None):
            left.remove(column)
            yield field, column
    for column in left:
        words = {(row[column] or "").strip().casefold() for row in table}
        if words <= PRECISIONS.keys():
            yield "precision", column


def _figure(root: Path, row: FigureWords, given: Mapping[str, str], doubts: dict[str, None]) -> FigureWords:
    """Return a row in words of ours; what it may be instead goes into `doubts`."""
    decoders = DECODERS.findall((root / "workloads/parts/networks/decoder.py").read_text(encoding="utf-8"))
    known = {
        "card": [card.name for card in load_cards(root)],
        "model": [*sorted(names.library_models(root)), *decoders, "resnet44", "cnn"],
    }
    row = {field: given.get(word.casefold(), word) for field, word in row.items() if word}
    out = row | {field: value for field, value in given.items() if field in COLUMNS and field not in row}

    def settle(field: str, choices: Sequence[str]) -> None:
        if len(choices) != 1 and field in given:
            choices = [given[field]]
        if len(choices) == 1:
            out[field] = choices[0]
            return
        said = f"'{out[field]}'" if field in out else "not said"
        which = (
            " or ".join(choices[:4]) or f"not known{suggest_name(out.get(field, ''), known.get(field, ()))}"
        )
        left, right = out.get(field, field).casefold(), choices[0] if choices else field.upper()
        doubts[f"{field}: {said} is {which}: --set '{left}={right}'"] = None

    def like(field: str, name: str) -> list[str]:
        return (
            [name] if name in known[field] else [one for one in known[field] if _plain(one) == _plain(name)]
        )

    card, model = out.get("card", ""), out.get("model", "")
    found = find_card(card, load_cards(root))
    processor = [card] if PROCESSOR.search(card) else []
    family = list(card_family(card, known["card"]))
    settle("card", [found.name] if found else like("card", card) or family or processor)
    begins = [one for one in decoders if model and one.startswith(_plain(model))]
    settle("model", like("model", model) or begins)
    precision = out.get("precision", "").casefold()
    both = [label for label in AMP if "amp" in precision and label[-4:] in precision]
    settle("precision", both or list(PRECISIONS.get(precision, ())) if precision else [*AMP, "fp32-default"])
    own, asked = "llm_step" if out.get("model") in decoders else "convnet", out.get("workload", "")
    trained = [asked] if asked in TRAININGS else [*TRAININGS]
    settle("workload", trained if out["metric"] in TRAINED else [own])
    for field in ("batch_size", *(number for number in _NUMBERS if number in out)):
        if not out.get(field, "").isdecimal():
            settle(field, [])
    if not FIGURE.fullmatch(out["value"]):
        settle("value", [])
    layout = out.get("layout", "").casefold()
    if layout in LAYOUTS:
        out["layout"] = LAYOUTS[layout]
    return out


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", re.sub(r"nvidia|geforce|amd|radeon", "", name.casefold()))


_NUMBERS = ("batch_size", "image_size", "sequence_length", "gpus")


def _work(row: FigureWords) -> dict[str, Any]:
    """Return the work of a figure: what a claim and a plan's row say alike."""
    workload = row["workload"]
    trains = workload in TRAININGS
    fields = ("model", "precision", *_NUMBERS, "layout")
    work: dict[str, Any] = {
        field: int(row[field]) if field in _NUMBERS else row[field] for field in fields if field in row
    }
    if workload in ("convnet", "cifar_fastai"):
        work.setdefault("image_size", 224)
    work["data_mode"] = "host" if trains else "cached"
    return {"workload": workload, "protocol": "published/1" if trains else "synthetic/1", **work}


def _claims_text(root: Path, name: str, source: str, figures: Sequence[FigureWords]) -> str:
    cards = {card.name for card in load_cards(root)}
    study = {"id": name, "name": f"{name} {datetime.now(UTC):%Y}", "title": f"Figures of {name}"}
    others = {row["card"]: "Named so by the table." for row in figures if row["card"] not in cards}
    claims = []
    for number, row in enumerate(figures, 1):
        of_tokens = row["metric"] == "throughput" and row["workload"] == "llm_step"
        unit, size = "tokens/s" if of_tokens else row["unit"], float(row["size"])
        printed = row["value"].replace(",", "")
        digits = len(printed.partition(".")[2])
        work = _work(row)
        claims.append(
            {
                "id": f"{name}-{number}",
                "workload": work.pop("workload"),
                "protocol": work.pop("protocol"),
                "kind": "quality" if row["metric"] == "accuracy" else "absolute",
                **({"epochs": int(row["epochs"])} if "epochs" in row else {}),
                "metric": row["metric"],
                "of": {"card": row["card"], **work},
                "value": round(float(printed) * size, 9),
                "half_digit": 0.5 * size * 10**-digits,
                "unit": unit,
            }
        )
    return tomlkit.dumps(
        {
            "studies": [{**study, "source": source}],
            **({"cards": others} if others else {}),
            "defaults": {
                "study": name,
                "source": source,
                "plans": {name: "timing"},
            },
            "claims": claims,
        }
    )


def _plan_text(name: str, figures: Sequence[FigureWords]) -> str:
    measures = {repr(measure): measure for measure in map(_measure, figures)}
    plan = {"name": name, "title": f"The figures of {name}", "repeats": 3, "measure": [*measures.values()]}
    return tomlkit.dumps(plan)


def _measure(row: FigureWords) -> dict[str, Any]:
    """Return the plan's row of a figure: a part of the training, unless the whole is what is published."""
    measure = _work(row)
    if row["workload"] not in TRAININGS:
        return {**measure, "limit": {"seconds": 75}}
    epochs = 2 if row["metric"] == "epoch_seconds" else int(row.get("epochs", 0))
    limit = {"limit": {"epochs": epochs}} if epochs else {}
    return {**measure, "data": TRAININGS[row["workload"]], "timeout_seconds": 86_400, **limit}
