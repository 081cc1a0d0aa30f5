"""A plan before anything is spent, as lines: its trials, time, disk and downloads, and what is left out."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from commands.doctor import LineDiagnosis, data_needs, diagnose_line, is_built
from commands.terminal import Screen
from harness.doctor.diagnosis import diagnosis_lines
from harness.doctor.surroundings import DataNeed
from harness.plan.order import Planned
from harness.record.trial_spec import special_words
from harness.run.choice import Chosen, choose_trials
from harness.run.setup import RunSetup, prepare_for_cards
from harness.settings import Settings
from harness.units import count_noun, format_bytes
from report.trials.key import grouped_by

WIDTH = 80


def show_plan(root: Path, settings: Settings, card: str = "") -> None:
    """Print a plan's trials, and what would prevent them here.

    Raises UserError for a card that results/cards.toml does not have, and what `doctor` does.
    """
    setup = prepare_for_cards(root, settings, card)
    screen = Screen()
    for note in setup.notes:
        for line in wrap_words(note, "  "):
            screen.say(line)
    found = LineDiagnosis(chosen=choose_trials(setup)) if card else diagnose_line(setup)
    if found.chosen is not None:
        needs = [need for need in data_needs(setup) if card or not need.at_hand]
        preview = _needs_words(setup, needs, built=not card and is_built(setup))
        screen.say("\n".join([*plan_lines(setup, found.chosen), *wrap_words(preview, "  ")]))
    if found.problems:
        screen.say("\n".join(diagnosis_lines(found.problems)))
    found.refuse()


def _needs_words(setup: RunSetup, missing: Sequence[DataNeed], *, built: bool) -> str:
    """Return what is to be built and fetched before a plan's first trial."""
    size = setup.image.build_bytes
    made = f"image '{setup.image.name}' " + ("is built" if built else "is to be built")
    if setup.settings.python is not None:
        made = "your interpreter is taken as it is"
    elif not built:
        made += f" (about {format_bytes(size)})" if size else ""
    each = (
        f"{need.name} ({format_bytes(need.download_bytes)})" if need.download_bytes else need.name
        for need in missing
    )
    return f"{made}; to fetch: {', '.join(each) or 'nothing'}"


def plan_lines(setup: RunSetup, chosen: Chosen) -> list[str]:
    """Return the chosen trials, each work under its own line, then their time and all that is left out."""
    shown = wrap_words(f"plan {setup.plan.name}: {setup.plan.title}", "  ")
    listed = sorted(chosen.planned, key=lambda item: (item.priority, item.place, item.trial.repeat))
    works = grouped_by(listed, lambda item: (item.trial.asked.workload, item.trial.asked.protocol, item.role))
    for (workload, protocol, role), members in works.items():
        trials = count_noun(len(members), "trial")
        shown.append(f"{workload} {protocol}, {role}: {trials}, {chosen.describe_time(members)}")
        shown += _variant_lines(members)
    blocks = f" in {setup.plan.blocks} blocks an hour apart" if setup.plan.blocks > 1 else ""
    trials = count_noun(len(chosen.planned), "trial")
    if places := {item.trial.asked.card for item in chosen.planned} - {None}:
        blocks += f", on each of {len(places)} cards one after the other"
    against = f", each beside its twin with {setup.against.named}" if setup.against else ""
    shown += wrap_words(
        f"{trials}, {chosen.time}{blocks}, in environment '{setup.image.name}'{against}", "  "
    )
    for clause in setup.against.moved if setup.against else ():
        shown += wrap_words(f"  there {clause}", "    ")
    for left in chosen.left_out:
        shown += wrap_words(f"  left out: {left.trials} × {left.what}: {left.reason}", "    ")
    return shown


def _variant_lines(members: Sequence[Planned]) -> list[str]:
    rows = grouped_by(
        (item.trial.asked.variant for item in members),
        lambda variant: (variant.model, variant.precision, variant.image_size, special_words(variant)),
    )
    shown = []
    for (model, precision, image_size, extra), row in rows.items():
        batches = dict.fromkeys(str(variant.batch_size) for variant in row)
        batch, modes = f"batch {', '.join(batches)}", ", ".join(dict.fromkeys(one.data_mode for one in row))
        pixels = f"{image_size} px" if image_size else ""
        words = "  ".join(part for part in (model, precision, batch, pixels, extra, modes) if part)
        shown += wrap_words(f"  {len(row):>3} × {words}", " " * 8)
    return shown


def wrap_words(text: str, indent: str) -> list[str]:
    """Return the text in lines of a terminal, those after the first indented."""
    lines = textwrap.TextWrapper(WIDTH, "", indent, break_on_hyphens=False, break_long_words=False)
    return lines.wrap(text)
