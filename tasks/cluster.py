"""A plan on a cluster's scheduler: sent, followed, brought home, ended."""

from __future__ import annotations

from invoke.context import Context

from commands.line import verb
from tasks.options import IMAGE, PLAN, PYTHON, ROOT, settings

SITE = "the cluster's profile, a TOML file (default: site.toml in the clone, where it is there)"


@verb(
    help={
        "plan": PLAN,
        "site": SITE,
        "image": IMAGE,
        "python": PYTHON,
        "nodes": "how many nodes a trial may take at most (default: the profile's)",
        "each_node": "the plan's trials on each card of each node of the partition",
        "label": "the machines' name in results/ (default: their devices)",
        "new_session": "start over instead of going on with the open submission",
        "retry": "also repeat trials that failed by themselves, such as out of memory",
        "list": "send nothing, and print a command for each trial, for any other scheduler",
        "dry_run": "print each batch script, and send none",
    }
)
def submit(
    c: Context,
    plan: str = "",
    site: str = "",
    image: str = "",
    python: str = "",
    nodes: int = 0,
    each_node: bool = False,
    label: str = "",
    new_session: bool = False,
    retry: bool = False,
    list: bool = False,
    dry_run: bool = False,
) -> None:
    """Send what is missing of a plan to SLURM, each trial as a job."""
    from commands import cluster

    how = cluster.How(
        site=site or None,
        nodes=nodes or None,
        each_node=each_node,
        new_session=new_session,
        retry=retry,
        listed=list,
        dry_run=dry_run,
    )
    cluster.submit(ROOT, settings(plan=plan, image=image, python=python, label=label), how)


@verb()
def status(c: Context) -> None:
    """Say how far the jobs are; change nothing."""
    from commands import cluster

    cluster.status(ROOT)


@verb(help={"wait": "go on until no job waits or runs"})
def collect(c: Context, wait: bool = False) -> None:
    """Write a record of each job's trial that has ended."""
    from commands import cluster

    cluster.collect_all(ROOT, wait=wait)


@verb(help={"plan": "only the jobs of this plan (default: of all)"})
def cancel(c: Context, plan: str = "") -> None:
    """End the jobs that wait or run."""
    from commands import cluster

    cluster.cancel(ROOT, plan or None)
