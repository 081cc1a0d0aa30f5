"""The processor's part of the telemetry: utilisation, clock, temperature, memory, load, package energy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.files import Files
from harness.probe.system import load_average

_RAPL = "sys/class/powercap"
_HWMON = "sys/class/hwmon"
_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")


class Processor:
    """Reads below `root`, so that a made-up tree can stand in; what cannot be read is null."""

    def __init__(self, root: str = "/") -> None:
        self._root = Path(root)
        self._names = Files(self._root).names
        self.missing: dict[str, str] = {}
        self._before = self._times()
        self._energy_before: dict[str, int] = {}
        self._joules = 0.0

    def sample(self) -> dict[str, Any]:
        """Utilisation is over the time since the last sample; energy is cumulative from the first."""
        return {
            "utilization_percent": self._utilization(),
            "mhz": self._mhz(),
            "temperature_c": self._temperature(),
            "memory_used_bytes": self._memory_used(),
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

    def _times(self) -> tuple[int, int] | None:
        words = (self._text("proc/stat") or "").split("\n")[0].split()
        if words[:1] != ["cpu"] or len(words) < 9:
            return None
        # Guest time is already counted in user time.
        numbers = [int(word) for word in words[1:9]]
        return sum(numbers), numbers[3] + numbers[4]

    def _utilization(self) -> float | None:
        before, now = self._before, self._times()
        self._before = now
        if before is None or now is None or now[0] <= before[0]:
            return None
        busy = 1 - (now[1] - before[1]) / (now[0] - before[0])
        return round(100 * min(max(busy, 0.0), 1.0), 1)

    def _mhz(self) -> float | None:
        cpus = [name for name in self._names("sys/devices/system/cpu/cpufreq") if name.startswith("policy")]
        read = [self._number(f"sys/devices/system/cpu/cpufreq/{name}/scaling_cur_freq") for name in cpus]
        mhz = [khz / 1000 for khz in read if khz]
        if not mhz:
            lines = (self._text("proc/cpuinfo") or "").split("\n")
            mhz = [float(line.split(":")[1]) for line in lines if line.startswith("cpu MHz")]
        return round(sum(mhz) / len(mhz), 1) if mhz else None

    def _temperature(self) -> float | None:
        for name in self._names(_HWMON):
            if self._text(f"{_HWMON}/{name}/name") in _SENSORS:
                value = self._number(f"{_HWMON}/{name}/temp1_input")
                return None if value is None else value / 1000
        return None

    def _memory_used(self) -> int | None:
        fields = dict(
            line.split(":", 1) for line in (self._text("proc/meminfo") or "").split("\n") if ":" in line
        )
        total, free = fields.get("MemTotal"), fields.get("MemAvailable")
        return (int(total.split()[0]) - int(free.split()[0])) * 1024 if total and free else None

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
