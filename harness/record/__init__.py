"""The models of everything that meets a file."""

from harness.device_kinds import DeviceKind
from harness.record.finding import Finding, finding
from harness.record.machine import Cpu, Environment, Gpu, Load, Machine, machine_differences
from harness.record.measurement import (
    AllReduce,
    DataFound,
    DeviceUsed,
    Epoch,
    Flops,
    KernelTime,
    LossScale,
    Measurement,
    Memory,
    MessageSize,
    Phase,
    PrecisionFound,
    ProgramRun,
    Protocol,
    Window,
)
from harness.record.published.claim import (
    CardClass,
    Claim,
    ClaimFile,
    ClaimKind,
    Curve,
    Seeds,
    Side,
    Study,
)
from harness.record.result import (
    SCHEMA,
    Against,
    Factor,
    Failure,
    Harness,
    LeftOut,
    Question,
    Record,
    Reported,
    Session,
    Steady,
    Summary,
    session_id,
)
from harness.record.series import Series
from harness.record.strict_model import Model, canonical_json, first_problem, parse_toml, short_hash
from harness.record.telemetry import (
    CardTelemetry,
    Energy,
    OtherProcesses,
    Telemetry,
    Trace,
    TraceStats,
)
from harness.record.trial_spec import DataMode, DataSource, Limit, Role, TrialRequest, TrialSpec, Variant
from harness.record.vocabulary.precision import FULL_PRECISION, PRECISION_ORDER, PRECISIONS, PURE, Precision
