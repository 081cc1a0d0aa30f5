"""The processor's part of the telemetry: utilisation, clock, temperature, memory, load, package energy."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from harness.files import Files
from harness.probe.system import load_average

_RAPL = "sys/class/powercap"
_HWMON = "sys/class/hwmon"
_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")


class Processor:
    """Sensors and counters are read below `root`, so that a made-up tree can stand in; null is unknown."""

    def __init__(self, root: str = "/") -> None:
        self._root = Path(root)
        self._names = Files(self._root).names
        self.missing: dict[str, str] = {}
        self._energy_before: dict[str, int] = {}
        self._joules = 0.0
        psutil.cpu_percent()

    def sample(self) -> dict[str, Any]:
        """Utilisation is over the time since the last sample; energy is cumulative from the first."""
        memory = psutil.virtual_memory()
        return {
            "utilization_percent": psutil.cpu_percent(),
            "mhz": _mhz(),
            "temperature_c": self._temperature(),
            "memory_used_bytes": memory.total - memory.available,
            "load": load_average(),
            "energy_joules": self._energy(),
        }

    def _text(self, path: str) -> str | None:
        try:
            return (self._root / path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError as error:
            self.missing.setdefault("cpu." + path.rsplit("/", 1)[1], type(error).__name__)
            return None

    def _number(self, path: str) -> int | None:
        text = self._text(path)
        try:
            return int(text) if text else None
        except ValueError:
            return None

    def _temperature(self) -> float | None:
        for name in self._names(_HWMON):
            if self._text(f"{_HWMON}/{name}/name") in _SENSORS:
                value = self._number(f"{_HWMON}/{name}/temp1_input")
                return None if value is None else value / 1000
        return None

    def _energy(self) -> float | None:
        packages = [name for name in self._names(_RAPL) if name.count(":") == 1 and "rapl" in name]
        read = {name: self._number(f"{_RAPL}/{name}/energy_uj") for name in packages}
        now = {name: value for name, value in read.items() if value is not None}
        if not now or len(now) < len(packages):
            return None
        for name, value in now.items():
            before = self._energy_before.get(name, value)
            wrapped = value < before
            most = self._number(f"{_RAPL}/{name}/max_energy_range_uj") if wrapped else 0
            self._joules += (value - before + (most or 0)) / 1e6
        self._energy_before = now
        return round(self._joules, 3)


def _mhz() -> float | None:
    with suppress(OSError, NotImplementedError):
        clock = psutil.cpu_freq()
        return round(clock.current, 1) if clock and clock.current else None
    return None
