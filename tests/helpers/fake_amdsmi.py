"""A stand-in for amdsmi with the real library's names and shapes, as its version 7.0.2 has them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class AmdSmiClkType(IntEnum):
    GFX = 1
    MEM = 5


class AmdSmiTemperatureType(IntEnum):
    EDGE = 0
    HOTSPOT = 1
    VRAM = 2


class AmdSmiTemperatureMetric(IntEnum):
    CURRENT = 0


class AmdSmiException(Exception):
    pass


class AmdSmiLibraryException(AmdSmiException):
    pass


class FakeAmdsmi:
    """One MI300X per bus number. `absent` names functions that fail as on a card that lacks them."""

    AmdSmiClkType = AmdSmiClkType
    AmdSmiTemperatureType = AmdSmiTemperatureType
    AmdSmiTemperatureMetric = AmdSmiTemperatureMetric
    AmdSmiException = AmdSmiException

    def __init__(self, buses: tuple[str, ...] = ("0000:C3:00.0",), absent: tuple[str, ...] = ()) -> None:
        self._buses = buses
        self._absent = absent
        self.seconds = 0
        self.locked = False

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("amdsmi_") and name in object.__getattribute__(self, "_absent"):

            def fails(*arguments: Any) -> Any:
                raise AmdSmiLibraryException(2)

            return fails
        return object.__getattribute__(self, name)

    def amdsmi_init(self, flag: int = 2) -> None:
        pass

    def amdsmi_shut_down(self) -> None:
        pass

    def amdsmi_get_processor_handles(self) -> list[str]:
        return list(self._buses)

    def amdsmi_get_gpu_device_bdf(self, processor_handle: str) -> str:
        return processor_handle

    def amdsmi_get_gpu_asic_info(self, processor_handle: str) -> dict[str, Any]:
        return {
            "market_name": "AMD Instinct MI300X",
            "target_graphics_version": "gfx942",
            "num_compute_units": 304,
        }

    def amdsmi_get_gpu_vram_info(self, processor_handle: str) -> dict[str, Any]:
        return {"vram_size": 196_592}

    def amdsmi_get_power_cap_info(self, processor_handle: str) -> dict[str, Any]:
        return {"power_cap": 750_000_000, "default_power_cap": 750_000_000}

    def amdsmi_get_gpu_driver_info(self, processor_handle: str) -> dict[str, Any]:
        return {"driver_name": "amdgpu", "driver_version": "6.12.12"}

    def amdsmi_get_gpu_vbios_info(self, processor_handle: str) -> dict[str, Any]:
        return {"version": "022.040.003.042.000001"}

    def amdsmi_get_clock_info(self, processor_handle: str, clock_type: AmdSmiClkType) -> dict[str, Any]:
        return {"clk": 2100 if clock_type is AmdSmiClkType.GFX else 1300, "clk_locked": self.locked}

    def amdsmi_get_temp_metric(
        self,
        processor_handle: str,
        sensor_type: AmdSmiTemperatureType,
        metric: AmdSmiTemperatureMetric,
    ) -> int:
        return {AmdSmiTemperatureType.HOTSPOT: 71, AmdSmiTemperatureType.VRAM: 58}[sensor_type]

    def amdsmi_get_power_info(self, processor_handle: str) -> dict[str, Any]:
        return {"current_socket_power": 600, "average_socket_power": "N/A"}

    def amdsmi_get_gpu_activity(self, processor_handle: str) -> dict[str, Any]:
        return {"gfx_activity": 99, "umc_activity": 40, "mm_activity": "N/A"}

    def amdsmi_get_gpu_vram_usage(self, processor_handle: str) -> dict[str, Any]:
        return {"vram_total": 196_592, "vram_used": 1024}

    def amdsmi_get_energy_count(self, processor_handle: str) -> dict[str, Any]:
        resolution = 15.3
        ticks = round(600 * 1e6 * self.seconds / resolution) + 10**9
        return {"energy_accumulator": ticks, "counter_resolution": resolution, "timestamp": 0}

    def amdsmi_get_violation_status(self, processor_handle: str) -> dict[str, Any]:
        ticks = 1000 * self.seconds
        return {
            "acc_counter": 5000 + ticks,
            "acc_ppt_pwr": 100 + ticks // 2,
            "acc_socket_thrm": 0,
            "acc_vr_thrm": "N/A",
            "acc_hbm_thrm": "N/A",
            "acc_prochot_thrm": 0,
        }

    def amdsmi_get_gpu_metrics_info(self, processor_handle: str) -> dict[str, Any]:
        return {"throttle_status": "N/A", "indep_throttle_status": True}

    def amdsmi_get_gpu_process_list(self, processor_handle: str) -> list[dict[str, Any]]:
        return [
            {"name": "python3", "pid": 100, "mem": 2**30, "cu_occupancy": 288},
            {"name": "other", "pid": 200, "mem": 2**20, "cu_occupancy": 16},
        ]

    def amdsmi_get_gpu_total_ecc_count(self, processor_handle: str) -> dict[str, Any]:
        return {"correctable_count": 0, "uncorrectable_count": 0, "deferred_count": 0}
