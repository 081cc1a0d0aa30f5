"""A purchase: prices, the bundle of an offer, the machine that is delivered."""

from __future__ import annotations

from pathlib import Path

from invoke.context import Context

from commands.line import verb
from tasks.options import DEVICE, ENGINE, PYTHON, ROOT, relative, settings


@verb(
    help={
        "to": "the file to write (default: purchase.toml)",
        "yes": "overwrite it, and write without a review: for answers from a file",
    }
)
def quote(c: Context, to: str = "purchase.toml", yes: bool = False) -> None:
    """Ask for prices, limits and your own mix of work, and write the buyer's file for `report`."""
    from commands import quote as quoting
    from harness.record.store import read_all

    path = ROOT / to
    names = quoting.known([stored.record for stored in read_all(ROOT).records])
    written = quoting.run(path, ask=input, say=print, names=names, without_asking=yes)
    print(f"{'written' if written else 'kept'}: {relative(path)}")


@verb(
    help={
        "out": "the file to write (default: report/out/gpudyno-<session>.tar.gz)",
        "session": "pack this session alone (default: every session that the page stands on)",
        "sign": "a private key of OpenSSH's to sign it with",
        "baseline": "what 1.00 is in the page's time-scaled charts",
        "margin": "how far below its figure a delivered machine may be (default: 0.05)",
        "with_prices": "also pack purchase.toml, with your prices and limits, and show them on its page",
    }
)
def bundle(
    c: Context,
    out: str = "",
    session: str = "",
    sign: str = "",
    baseline: str = "",
    margin: float = 0.05,
    with_prices: bool = False,
) -> None:
    """Pack records, locks, claims, plans and page into one archive, and print its acceptance clause."""
    from commands import offer

    how = offer.Packing(
        out=Path(out) if out else None,
        session=session or None,
        baseline=settings(baseline=baseline).baseline,
        margin=margin,
        key=Path(sign) if sign else None,
        with_prices=with_prices,
    )
    offer.pack(ROOT, how)


@verb(help={"bundle": "the bundle's file", "signers": "OpenSSH's file of allowed signers"})
def verify(c: Context, bundle: str, signers: str = "") -> None:
    """Check a bundle: every byte, every record, and every figure of its page, from raw samples."""
    from commands import offer

    offer.verify(Path(bundle), Path(signers) if signers else None)


@verb(
    help={
        "bundle": "the bundle that the machine was ordered by; its plan is run",
        "device": DEVICE,
        "engine": ENGINE,
        "python": PYTHON,
        "records": "a session in results/ to judge (default: run the bundle's plan now)",
    }
)
def accept(
    c: Context, bundle: str, device: str = "", engine: str = "", python: str = "", records: str = ""
) -> None:
    """Say whether this machine is the one that was ordered, and as fast: pass, fail, or another machine."""
    from commands import accept as accepting

    chosen = settings(device=device, engine=engine, python=python)
    accepting.accept(ROOT, chosen, Path(bundle), records or None)
