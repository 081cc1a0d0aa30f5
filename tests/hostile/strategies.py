"""Documents that are almost right: one place of a good one changed, as its pydantic model allows or not."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel

MARK = "gpudynomark"
"""An element of this name in a page was brought by what it shows."""
MARKUP = f'"><{MARK} onload=alert(1)></script></style></title>'
TEXTS = (
    *("", " ", "x" * 5000, MARKUP, "../../../outside", "/", ".", "a\0b", "\x1b[31mred", "two\nlines", "nan"),
    *(
        "\u202egap eht\u2067",
        "@everyone #1 [x](y) `z` | *w*",
        "9" * 400,
        "~nobody-has-this-name/x",
        "²",
        "%s",
    ),
    *("$(touch outside)", "a." * 2000, "{}"),
)
NUMBERS = (-1, 0, 1, 2, 0.5, 1e308, -1e308, 5e-324, 2**31, 2**63, 10**30, float("nan"), float("inf"))
TOKENS = (
    *(
        b"",
        b"\0",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"[" * 20_000,
        b'{"a":' * 20_000,
        b"9" * 400,
        b"1e999",
        b"NaN",
    ),
    *(b"null", b"true", b"{", b"]", b'"', b"\n\n= [[", b"2099-12-31T23:59:59Z", MARKUP.encode()),
)

texts = st.one_of(
    st.sampled_from(TEXTS),
    st.text("abcxyz0129 ._/=:@\\-", max_size=200),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=200),
)
numbers = st.one_of(st.sampled_from(NUMBERS), st.integers(), st.floats())
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


@cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def resolved(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    return schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node


def allowed(node: dict[str, Any], schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a model's schema allows in one place, as far as it says so."""
    node = resolved(node, schema)
    if choices := node.get("enum") or ([node["const"]] if "const" in node else []):
        return st.sampled_from(choices)
    if "anyOf" in node:
        return st.one_of([allowed(each, schema) for each in node["anyOf"]])
    low, high = (node.get(f"{end}imum", node.get(f"exclusive{end.title()}imum")) for end in ("min", "max"))
    match node.get("type"):
        case "number":
            return st.floats(low, high)
        case "integer":
            return st.integers(low, high)
        case "boolean":
            return st.booleans()
        case "string" if "pattern" in node:
            return st.from_regex(node["pattern"])
        case "string":
            return st.text(min_size=node.get("minLength", 0), max_size=node.get("maxLength", 300))
    return values


def places(document: Any, node: dict[str, Any], schema: dict[str, Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Every key, and the first items of every list: what holds it, its key, and its model's schema."""
    node = resolved(node, schema)
    for inner in [resolved(each, schema) for each in node.get("anyOf", [])]:
        node = inner if "properties" in inner or "items" in inner else node
    own = node.get("properties", {})
    keys = document if isinstance(document, dict) else range(min(len(document), 3))
    for key in list(keys):
        known = own.get(key) or node.get("additionalProperties") or node.get("items") or {}
        known = known if isinstance(known, dict) else {}
        yield document, key, known
        if isinstance(document[key], dict | list):
            yield from places(document[key], known, schema)


@st.composite
def changed(draw: st.DrawFn, document: Any, model: type[BaseModel] | None) -> Any:
    """A document with one value changed, gone, or under another name."""
    document = copy.deepcopy(document)
    schema = schema_of(model) if model else {}
    holder, key, node = draw(st.sampled_from(list(places(document, schema, schema)) or [([0], 0, {})]))
    value = holder[key]
    how = draw(st.sampled_from(("gone", "renamed", "scaled", "allowed", "allowed", "hostile", "any")))
    if how == "gone":
        del holder[key]
    elif how == "renamed" and isinstance(holder, dict):
        holder[draw(texts)] = value
    elif how == "scaled" and isinstance(value, int | float) and not isinstance(value, bool):
        holder[key] = value * draw(st.sampled_from((0.5, 0.9, 1.1, 2, 3, -1, 1000)))
    elif how == "allowed":
        holder[key] = draw(allowed(node, schema))
    else:
        holder[key] = draw(st.sampled_from((*TEXTS, *NUMBERS)) if how == "hostile" else values)
    return document


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes of which a piece is cut, doubled, or something else."""
    at = draw(st.integers(0, len(content)))
    until = min(len(content), at + draw(st.sampled_from((1, 2, 8, 64, 4096))))
    token = draw(st.one_of(st.sampled_from(TOKENS), st.binary(max_size=8)))
    ways = (
        *(
            content[:at],
            content[:at] + content[until:],
            content[:until] + content[at:],
            b"\xef\xbb\xbf" + content,
        ),
        *(content[:at] + token + content[at:], content[:at] + token + content[until:]),
        content.decode(errors="replace").encode("utf-16"),
    )
    return draw(st.sampled_from(ways))


def mostly(whole: st.SearchStrategy[bytes], content: bytes) -> st.SearchStrategy[bytes]:
    """In two cases of three the form stays whole."""
    return st.integers(0, 2).flatmap(lambda n: whole if n else damaged(content))


def json_files(content: bytes, model: type[BaseModel] | None = None) -> st.SearchStrategy[bytes]:
    whole = changed(json.loads(content), model).map(lambda made: json.dumps(made).encode())
    return mostly(whole, content)


def json_lines(content: bytes) -> st.SearchStrategy[bytes]:
    lines = content.splitlines(keepends=True)

    @st.composite
    def one_changed(draw: st.DrawFn) -> bytes:
        at = draw(st.integers(0, len(lines) - 1))
        other = draw(changed(json.loads(lines[at]), None).map(lambda made: json.dumps(made).encode() + b"\n"))
        return b"".join(
            [*lines[:at], *draw(st.sampled_from(([], [other], [lines[at]] * 2))), *lines[at + 1 :]]
        )

    return mostly(one_changed(), content)


def toml_files(content: bytes, model: type[BaseModel] | None = None) -> st.SearchStrategy[bytes]:
    whole = changed(tomllib.loads(content.decode()), model).map(lambda made: as_toml(made).encode())
    return mostly(whole, content)


def as_toml(document: dict[str, Any]) -> str:
    """One key a line, what lies below it in line; a null has no form in TOML, and is left out."""

    def written(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(pairs(value)) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(written(inner) for inner in value if inner is not None) + "]"
        if isinstance(value, str):
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        return str(value).lower() if isinstance(value, bool | int | float) else value.isoformat()

    def pairs(table: dict[str, Any]) -> Iterator[str]:
        return (f"{written(key)} = {written(value)}" for key, value in table.items() if value is not None)

    return "".join(f"{line}\n" for line in pairs(document))
