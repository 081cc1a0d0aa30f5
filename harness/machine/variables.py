"""Variables of the user's that change what runs: they are passed in, recorded and shown."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.clean import Names, clean
from harness.probe.unit import unit_of

VISIBILITY = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
)
"""Which devices are seen. The indices are the host's: in a container that holds fewer they mean others."""

# fmt: off
_NAMES = frozenset((
    *VISIBILITY,
    # which device code runs
    "HSA_OVERRIDE_GFX_VERSION", "CUDA_DEVICE_ORDER", "CUDA_MODULE_LOADING", "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS", "HSA_ENABLE_SDMA", "HSA_XNACK", "HSA_NO_SCRATCH_RECLAIM",
    "AMD_SERIALIZE_KERNEL", "GPU_MAX_HW_QUEUES", "MIOPEN_FIND_MODE", "MIOPEN_FIND_ENFORCE",
    "TORCH_BLAS_PREFER_HIPBLASLT", "ROCBLAS_LAYER", "CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE",
    # the arithmetic
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "NVIDIA_TF32_OVERRIDE", "ONEDNN_DEFAULT_FPMATH_MODE",
    "DNNL_DEFAULT_FPMATH_MODE", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY",
    "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR", "TORCH_CUDNN_V8_API_DISABLED",
    # threads
    "OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY", "GOMP_CPU_AFFINITY", "KMP_AFFINITY",
    "KMP_BLOCKTIME", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS",
    # memory
    "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_HIP_MEMORY_CACHING", "MALLOC_ARENA_MAX",
))
# fmt: on
_PREFIXES = (
    "HSA_OVERRIDE_GFX_VERSION_",
    "PYTORCH_TUNABLEOP_",
    "NCCL_P2P_",
    "NCCL_SHM_",
    "NCCL_ALGO",
    "NCCL_PROTO",
)
_UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Fa-f]{4,}(?:-[0-9A-Fa-f]+)*")


def passed_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Those of `environ` that go into a trial, as they are."""
    return {
        name: value for name, value in sorted(environ.items()) if name in _NAMES or name.startswith(_PREFIXES)
    }


def recorded_variables(passed: Mapping[str, str], names: Names) -> dict[str, str]:
    """The same for a record: a card's UUID as its hash, everything else cleaned."""
    return {
        name: clean(_UUID.sub(lambda found: f"unit:{unit_of(found.group())}", value), names, keep=400)
        for name, value in passed.items()
    }
