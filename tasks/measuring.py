"""What a machine measures: from its diagnosis to its records."""

from __future__ import annotations

from invoke.context import Context

from commands.line import verb
from tasks.options import BLOCKS, BUILDING, CHOOSING, DRY_RUN, PRECISION, ROLE, ROOT, SHARED, settings


@verb(
    help={
        **CHOOSING,
        "deep": "also build, and take each path that a long plan will need once",
        "site": "try a cluster by one short job: its profile (default: site.toml in the clone)",
    },
    optional=["site"],
)
def doctor(
    c: Context,
    plan: str = "",
    device: str = "",
    image: str = "",
    engine: str = "",
    python: str = "",
    deep: bool = False,
    site: str = "",
) -> None:
    """Say what this machine can do and what a plan needs; change nothing, but for --deep and --site."""
    from commands import doctor as diagnosing

    chosen = settings(plan=plan, device=device, image=image, engine=engine, python=python)
    if site:
        from commands.site import doctor as cluster

        # Without a value its answer is no text.
        cluster.doctor(ROOT, chosen, site if isinstance(site, str) else None)
        return
    (diagnosing.deep if deep else diagnosing.doctor)(ROOT, chosen)


@verb(
    help={
        **CHOOSING,
        "budget": "a length of time such as 30m or 8h that the plan must fit",
        "role": ROLE,
        "precision": PRECISION,
        "card": 'a card of results/cards.toml that need not be here, as "RTX 4090" or "4x RTX 4090"',
        "commands": "also print every command",
    }
)
def plan(
    c: Context,
    plan: str = "",
    device: str = "",
    image: str = "",
    engine: str = "",
    python: str = "",
    budget: str = "",
    role: str = "",
    precision: str = "",
    card: str = "",
    commands: bool = False,
) -> None:
    """Print a plan's trials, how long they take, and what they need, here or on a card by its name."""
    from commands.plans import show

    chosen = settings(
        plan=plan,
        device=device,
        image=image,
        engine=engine,
        python=python,
        budget=budget,
        role=role,
        precision=precision,
    )
    show.show(ROOT, chosen, card, commands=commands)


@verb(
    help={
        **SHARED,
        "only": "one data set by name: cifar-100, mnist, wikitext-2, weights-resnet18, chestxray …",
        "from_": "with --only chestxray: the folder that you unpacked ChestX-ray14 into; it is only read",
    }
)
def data(
    c: Context,
    plan: str = "",
    device: str = "",
    engine: str = "",
    python: str = "",
    only: str = "",
    from_: str = "",
) -> None:
    """Fetch the data and weights that a plan needs, each checked by its hash."""
    from commands import measure

    if from_ or only == "chestxray":
        measure.prepared_data(only, from_)
        return
    measure.data(ROOT, settings(plan=plan, device=device, engine=engine, python=python), only or None)


@verb(help={**BUILDING, "dry_run": DRY_RUN})
def build(
    c: Context,
    plan: str = "",
    device: str = "",
    image: str = "",
    engine: str = "",
    python: str = "",
    base: str = "",
    wheelhouse: str = "",
    dry_run: bool = False,
) -> None:
    """Build the image, or make the virtual environment, that a plan needs on this machine."""
    from commands import measure

    chosen = settings(
        plan=plan, device=device, image=image, engine=engine, python=python, base=base, wheelhouse=wheelhouse
    )
    measure.build(ROOT, chosen, dry_run=dry_run)


@verb(
    help={
        **BUILDING,
        "out": "the archive to write (default: gpudyno-<plan>.tar here)",
        "pythons": "the versions of Python that the site may have, as 3.11,3.12 (default: this one's)",
        "dry_run": "list what would go in, with sizes, and write nothing",
    }
)
def pack(
    c: Context,
    plan: str = "",
    device: str = "",
    image: str = "",
    engine: str = "",
    python: str = "",
    base: str = "",
    wheelhouse: str = "",
    out: str = "",
    pythons: str = "",
    dry_run: bool = False,
) -> None:
    """Write one archive with all that a plan needs at a site without internet; unpack.py lies in it."""
    from commands.site import pack as packing

    chosen = settings(
        plan=plan, device=device, image=image, engine=engine, python=python, base=base, wheelhouse=wheelhouse
    )
    packing.pack(ROOT, chosen, out=out, pythons=pythons, dry_run=dry_run)


@verb(
    help={
        **BUILDING,
        "budget": "a length of time such as 30m or 8h; what does not fit is left out in a stated order",
        "role": ROLE,
        "precision": PRECISION,
        "blocks": BLOCKS,
        "claim": "run what this published figure needs, by its id; may be given several times",
        "claims": "'here': run what as many figures need as can be judged here and fit the budget",
        "label": "the machine's name in results/ (default: its devices)",
        "new_session": "start over instead of going on with the open session",
        "retry": "also repeat trials that failed by themselves, such as out of memory",
        "strict": "exit with 3 if a trial failed",
        "no_build": "refuse instead of building what is missing",
        "dry_run": DRY_RUN,
    },
    iterable=["claim"],
)
def run(
    c: Context,
    plan: str = "",
    device: str = "",
    image: str = "",
    engine: str = "",
    python: str = "",
    base: str = "",
    wheelhouse: str = "",
    budget: str = "",
    role: str = "",
    precision: str = "",
    blocks: int = 0,
    claim: list[str] | None = None,
    claims: str = "",
    label: str = "",
    new_session: bool = False,
    retry: bool = False,
    strict: bool = False,
    no_build: bool = False,
    dry_run: bool = False,
) -> None:
    """Run what is missing of a plan, one fresh process a trial, and write a record for each."""
    from commands import measure

    chosen = settings(
        plan=plan,
        device=device,
        image=image,
        engine=engine,
        python=python,
        base=base,
        wheelhouse=wheelhouse,
        budget=budget,
        role=role,
        precision=precision,
        blocks=blocks or None,
        label=label,
    )
    how = measure.How(
        new_session=new_session, retry=retry, strict=strict, build=not no_build, dry_run=dry_run
    )
    if claim or claims:
        from commands import claims as published

        published.run(ROOT, chosen, published.asked_for(claim or [], claims), how)
    else:
        measure.run(ROOT, chosen, how)
