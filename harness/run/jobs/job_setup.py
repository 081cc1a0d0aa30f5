"""From a command's settings and a site's profile to the setup of its jobs; this machine may have no card."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from harness.device_kinds import DEVICE_KINDS
from harness.engine import apptainer
from harness.engine.apptainer import ApptainerEngine
from harness.engine.choose import venv_engine
from harness.engine.image_build import build_settings
from harness.engine.interface import Engine
from harness.engine.slurm.script import spread_devices
from harness.engine.slurm.site import Site
from harness.errors import UserError
from harness.image.images import choose_image, load_images
from harness.machine import (
    VISIBILITY,
    Selection,
    local_names,
    look_at_machine,
    passed_variables,
    recorded_variables,
)
from harness.plan import plan_file, selection
from harness.record import Gpu
from harness.run.choice import Chosen
from harness.run.setup import RunSetup
from harness.settings import Settings


def prepare_jobs(root: Path, settings: Settings, site: Site) -> RunSetup:
    """What `submit` works with, before anything is built or fetched.

    Raises NoDevice where no image serves the site's devices, and what plan.load and load_images do.
    """
    machine, _ = look_at_machine(settings.label)
    # This node's processor says nothing of the processors that the jobs will have.
    unknown = machine.cpu.model_copy(update={"native_16_bit": None})
    machine = machine.model_copy(update={"cpu": unknown})
    selection = _site_selection(site)
    capability = (site.capability,) if site.capability else ()
    image = choose_image(load_images(root), site.device, capability=capability, name=settings.image)
    passed = {name: text for name, text in passed_variables(os.environ).items() if name not in VISIBILITY}
    return RunSetup(
        root=root,
        settings=settings,
        machine=machine,
        selection=selection,
        image=image,
        engine=_site_engine(root, settings, site, recorded_variables(passed, local_names())),
        plan=plan_file.load_plan(root, settings.plan),
        passed=passed,
        notes=(),
    )


def _site_selection(site: Site) -> Selection:
    """Return the most devices that a trial may have, as far as the profile names them."""
    if site.device == "cpu":
        return Selection("cpu")
    count = site.nodes * (site.gpus_per_node or 1)
    card = {
        "vendor": DEVICE_KINDS[site.device].vendor,
        "name": site.gpu_type or "unknown",
        "architecture": site.capability,
    }
    return Selection(
        site.device, gpus=tuple(Gpu.model_validate({"index": at, **card}) for at in range(count))
    )


def _site_engine(root: Path, settings: Settings, site: Site, recorded: Mapping[str, str]) -> Engine:
    """What makes the environment that jobs start in."""
    if site.runtime == "none":
        return replace(venv_engine(root, settings, recorded), name="slurm")
    building = build_settings(settings, root=root, environ=os.environ)
    # Where it is a module of the site's, only a job that has loaded it finds it.
    program = apptainer.find_client() or apptainer.CLIENTS[0]
    return ApptainerEngine(root, program, building, recorded, "slurm")


def keep_fitting(chosen: Chosen, site: Site) -> Chosen:
    """Return the chosen trials without those whose devices cannot be spread evenly over the site's nodes."""
    reason = f"they have no even place on {site.nodes} nodes of {site.gpus_per_node or 1} devices"
    able, others = selection.keep_wanted(
        chosen.planned,
        lambda item: spread_devices(item.trial.asked.variant.gpus, site) is not None,
        "trials on more devices",
        reason,
    )
    if not able:
        raise UserError(
            "no trial of the plan fits this site's nodes",
            remedy="see 'nodes' and 'gpus_per_node' of its profile",
        )
    return replace(chosen, planned=able, left_out=(*chosen.left_out, *others))
