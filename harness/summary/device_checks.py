"""Checks of what the machine and its devices did while a trial ran.

Shares are of the measured window. What was not read is no cause: unknown is null, and a note says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from harness.engines import ENGINES
from harness.record import (
    CardTelemetry,
    Finding,
    Gpu,
    Load,
    Machine,
    Record,
    Telemetry,
    finding,
)
from harness.record.finding import FindingValue, Severity
from harness.summary.checks import Findings
from harness.summary.trial_devices import mean_in_windows, used_cards
from harness.telemetry.reader import CUT_SHORT

FOREIGN_BYTES = 200 * 2**20
"""A context of another process takes more than this as soon as it computes."""

FOREIGN_PERCENT = 1.0
"""Another process may use so much of a card's time: what it used, ours did not have."""

POWER_SLACK = 0.005
"""A driver rounds its limits."""

START_TEMPERATURE_APART = 5.0
"""Degrees from the median of the card's other starts: leakage makes a hotter start draw more."""


LIMITED_SHARE = 0.01
"""A trial that is slowed down for more of its window is disturbed."""

LONE_SAMPLES = 2
"""A single sample of a slowdown may be a change of the performance state."""

DRIVER_GONE = "the driver stopped answering"
CARD_LOST = "NVMLError_GpuIsLost"


def device_findings(record: Record) -> Findings:
    """Yield what is found of one trial by its telemetry, its load beforehand, its machine and its session."""
    telemetry = record.telemetry
    cards = telemetry.cards if telemetry else ()
    described = used_cards(record)
    yield from _foreign_findings(record, cards, described)
    for card in cards:
        yield from _heat_findings(card)
        yield from _hardware_findings(card, telemetry.samples if telemetry else 0)
        yield from _power_findings(card)
        yield from _fault_findings(card)
    yield from _driver_findings(telemetry)
    for gpu in described:
        watched = _card_telemetry(gpu, cards)
        yield from _limit_findings(gpu, watched, record.machine)
        yield from _clock_findings(gpu, watched, telemetry, record.machine)
        yield from _link_findings(gpu, watched)
        yield from _setting_findings(gpu)
        yield from _numa_findings(gpu, record)
    yield from _load_findings(record.machine, record.load)
    yield from (warning for warning in record.warnings if warning.severity != "note")
    if described:
        yield from _watching_findings(telemetry)


def _watching_findings(telemetry: Telemetry | None) -> Findings:
    """Yield what is not known of the trial's cards, since nothing looked at them or they reported nothing."""
    if telemetry is None or not telemetry.cards:
        yield finding("unwatched")
        return
    if telemetry.ended == CUT_SHORT and not telemetry.windows:
        yield finding("unwatched", seconds=telemetry.seconds)
    for card in telemetry.cards:
        if not (card.sm_mhz or card.power_watts or card.utilization_percent):
            yield finding("unwatched", card=card.index)
    listed = any(card.others is not None for card in telemetry.cards)
    why = telemetry.others_unknown_because or ("" if listed else "the driver does not list them")
    if why:
        yield finding("unwatched", "note", why=why[:300])


def _card_telemetry(gpu: Gpu, cards: Sequence[CardTelemetry]) -> CardTelemetry | None:
    def same(card: CardTelemetry) -> bool:
        return card.unit == gpu.unit if card.unit and gpu.unit else card.index == gpu.index

    return next((card for card in cards if same(card)), None)


def _foreign_findings(record: Record, cards: Sequence[CardTelemetry], described: Sequence[Gpu]) -> Findings:
    """Yield other processes during the trial where the sampler sees them; else just before it."""
    watched = [card for card in cards if card.others is not None]
    for card in watched:
        others = card.others
        if others is None or not others.processes:
            continue
        held: dict[str, FindingValue] = {"card": card.index, "samples_share": others.samples_share}
        if others.memory_bytes is not None:
            held["other_mib"] = others.memory_bytes / 2**20
        used = others.utilization_percent
        if used is not None and used > FOREIGN_PERCENT:
            held["other_percent"] = used
        grave = (others.memory_bytes or 0) > FOREIGN_BYTES or (used or 0.0) > FOREIGN_PERCENT
        yield finding("foreign-process", "invalid" if grave else "warn", **held)
    if described and not watched:
        yield from _earlier_process_findings(record.machine, record.load)


def _earlier_process_findings(machine: Machine, load: Load) -> Findings:
    """Yield a process before the trial: all cards are asked together, so of several it may be another's."""
    memory = load.other_gpu_memory_bytes
    if load.other_gpu_processes and memory is not None:
        grave = memory > FOREIGN_BYTES and len(machine.gpus) == 1
        yield finding("foreign-process", "invalid" if grave else "warn", other_mib=memory / 2**20)


def _heat_findings(card: CardTelemetry) -> Findings:
    """Yield throttling by heat: the counter has no cause, so the samples' reasons say how grave it is."""
    counted = card.limited_share.get("thermal", 0.0)
    hard = card.reasons_share.get("hw_thermal_slowdown", 0.0)
    soft = card.reasons_share.get("sw_thermal_slowdown", 0.0)
    if soft and not hard:
        if max(soft, counted) > LIMITED_SHARE:
            yield finding("chassis-limited", card=card.index, share=max(soft, counted))
    elif max(hard, counted) > LIMITED_SHARE:
        yield finding("thermal-throttling", card=card.index, share=max(hard, counted))


def _hardware_findings(card: CardTelemetry, samples: int) -> Findings:
    """Yield a brake on its power input, or a slowdown whose reason the driver does not give."""
    brake = card.reasons_share.get("hw_power_brake", 0.0)
    if brake > LIMITED_SHARE:
        yield finding("power-brake", card=card.index, samples_share=brake)
    slowed = card.reasons_share.get("hw_slowdown", 0.0)
    named = brake > LIMITED_SHARE or card.reasons_share.get("hw_thermal_slowdown", 0.0) > LIMITED_SHARE
    if slowed > LIMITED_SHARE and slowed * samples >= LONE_SAMPLES and not named:
        yield finding("hardware-slowdown", card=card.index, samples_share=slowed)


def _power_findings(card: CardTelemetry) -> Findings:
    """Yield a card at its power limit, which is its normal state."""
    capped = max(card.limited_share.get("power", 0.0), card.reasons_share.get("sw_power_cap", 0.0))
    if capped > LIMITED_SHARE:
        yield finding("power-cap", card=card.index, share=capped)


def _fault_findings(card: CardTelemetry) -> Findings:
    if card.ecc_uncorrected:
        yield finding("memory-error", errors=card.ecc_uncorrected, card=card.index)
    if card.xids:
        yield finding("device-fault", xids=card.xids, card=card.index)
    if card.mig_changed:
        yield finding("mig-changed", card=card.index)


def _driver_findings(telemetry: Telemetry | None) -> Findings:
    if telemetry is None:
        return
    if CARD_LOST in telemetry.missing.values():
        yield finding("driver-gone", "invalid", device="card")
    elif telemetry.missing.get("cards") == DRIVER_GONE:
        yield finding("driver-gone")


def _limit_findings(gpu: Gpu, watched: CardTelemetry | None, machine: Machine) -> Findings:
    """Yield a power limit that was changed or set off its default: invalid unless it is declared."""
    severity: Severity = "note" if "power-limit" in machine.declared else "invalid"
    if watched is not None and watched.power_limit_changed:
        yield finding("power-limit", severity, card=gpu.index)
        return
    seen = (watched.power_limit_set_watts or watched.power_limit_watts) if watched is not None else None
    limit, default = seen or gpu.power_limit_watts, gpu.power_limit_default_watts
    if limit and default and abs(limit / default - 1) > POWER_SLACK:
        yield finding("power-limit", severity, card=gpu.index, limit_watts=limit, default_watts=default)


def _clock_findings(
    gpu: Gpu, watched: CardTelemetry | None, telemetry: Telemetry | None, machine: Machine
) -> Findings:
    # A driver may not report it for a card at rest, so the samples under load count too.
    locked_share = watched.reasons_share.get("application_clocks", 0.0) if watched else 0.0
    if gpu.clocks_locked or locked_share > LIMITED_SHARE:
        severity: Severity = "note" if "locked-clocks" in machine.declared else "invalid"
        yield finding("locked-clocks", severity, card=gpu.index)
    mean = mean_in_windows(watched.sm_mhz if watched else None, telemetry)
    if mean is not None and gpu.clock_max_mhz:
        yield finding("card-clock", card=gpu.index, mean_mhz=mean, highest_share=mean / gpu.clock_max_mhz)


def _link_findings(gpu: Gpu, watched: CardTelemetry | None) -> Findings:
    """Yield a slow link, seen under load alone: at rest it is slower."""
    if watched is None:
        return
    pairs = (
        ("generation", watched.pcie_generation, gpu.pcie_generation_max),
        ("width", watched.pcie_width, gpu.pcie_width_max),
    )
    for what, value, most in pairs:
        if value and most and value < most:
            yield finding("pcie-link", card=gpu.index, quantity=what, linked=value, highest=most)


def _setting_findings(gpu: Gpu) -> Findings:
    if gpu.persistence is False:
        yield finding("persistence-off", card=gpu.index)
    if gpu.mig not in (None, "off"):
        yield finding("mig-slice", card=gpu.index, **{"profile" if gpu.slice else "mode": gpu.mig[:80]})


def _numa_findings(gpu: Gpu, record: Record) -> Findings:
    near, ours = gpu.numa_node, record.machine.cpu.numa_affinity
    # A container's processors are its engine's choice, not those of this process.
    same_cpus = ENGINES[record.environment.engine].on_host
    if same_cpus and near is not None and ours and near not in ours:
        yield finding("remote-numa", card=gpu.index, node=near)


def _load_findings(machine: Machine, load: Load) -> Findings:
    """Yield work of others just before the trial."""
    cores, busy = machine.cpu.cores or machine.cpu.threads, load.busy_cpus
    if cores and busy is not None and busy > cores / 2:
        yield finding("busy-machine", busy_cores=busy, cores=cores)


def start_findings(records: Sequence[Record]) -> tuple[tuple[Finding, ...], ...]:
    """Return findings that only a session's trials together show, one tuple for each record, in their order.

    A start further than 5 °C from the median start of the same card in the same session.
    """
    starts: dict[tuple[str, str], list[float]] = {}
    for record in records:
        for mark, degrees in _start_temperatures(record):
            starts.setdefault(mark, []).append(degrees)
    return tuple(
        tuple(
            finding("start-temperature", start_c=degrees, median_c=usual)
            for mark, degrees in _start_temperatures(record)
            if len(starts[mark]) > 1
            and abs(degrees - (usual := median(starts[mark]))) > START_TEMPERATURE_APART
        )
        for record in records
    )


def _start_temperatures(record: Record) -> Iterator[tuple[tuple[str, str], float]]:
    for card in record.telemetry.cards if record.telemetry else ():
        if card.start_temperature_c is not None:
            yield (record.session, card.unit or str(card.index)), card.start_temperature_c


def standing_findings(machine: Machine, load: Load, cards: Sequence[Gpu]) -> Findings:
    """Yield what is found of a machine and some of its cards before any trial."""
    for gpu in cards:
        yield from _limit_findings(gpu, None, machine)
        yield from _clock_findings(gpu, None, None, machine)
        yield from _setting_findings(gpu)
    yield from _earlier_process_findings(machine, load)
    yield from _load_findings(machine, load)
    yield from machine_findings(machine)


def machine_findings(machine: Machine) -> Findings:
    """Yield what belongs to the machine and not to a trial."""
    cpu = machine.cpu
    governors = set((cpu.governor or "performance").split(","))
    if machine.virtual not in (None, "none"):
        yield finding("virtual-machine", hypervisor=machine.virtual[:80])
    if governors != {"performance"}:
        yield finding("governor", governor=(cpu.governor or "")[:80])
    if cpu.usable is not None and cpu.threads is not None and cpu.usable < cpu.threads:
        yield finding("cpu-limit", usable=cpu.usable, threads=cpu.threads)
    for card in machine.silent_cards:
        yield finding("silent-card", card=card[:200])
