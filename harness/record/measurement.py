"""What a workload writes when its trial ends: raw samples, and what it found itself running on."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness.device_kinds import DeviceKind
from harness.record.series import Packed, Seconds
from harness.record.strict_model import LeftOutIfNull, Model, Number
from harness.record.trial_spec import DataSource, Name, OptionValue, Sha1
from harness.record.vocabulary.precision import Precision


class DeviceUsed(Model):
    """The device as the framework saw it from inside."""

    kind: DeviceKind
    name: str
    count: Annotated[int, Field(ge=1)] = 1
    unit: str | None = None
    capability: str | None = None
    memory_bytes: int | None = None
    threads: int | None = None
    simulated: Annotated[bool, Field(exclude_if=lambda simulated: not simulated)] = False
    """A stand-in answered for the device: no figure of it was measured on one."""


class Probe(Model):
    """One numerical precision probe: the largest error against float64, relative to the mean magnitude."""

    operation: Literal["matmul", "convolution"]
    error: Number
    reads_as: str
    """What the error says: fp32-ieee, tf32, fp16 or bf16."""


class LossScale(Model):
    """How the loss was scaled."""

    kind: Literal["static", "dynamic"]
    first: Number
    last: Number
    skipped_steps: int


class PrecisionFound(Model):
    """What the arithmetic really was: counted by a hook on the layers that do the work."""

    label: Precision
    output_dtypes: dict[str, int]
    parameter_dtypes: dict[str, int]
    method: str
    """The code path: 'torch.autocast', 'apex FP16_Optimizer', 'own master weights', 'none'."""
    loss_scale: LossScale | None = None
    probes: tuple[Probe, ...] = ()
    flags: dict[str, OptionValue | None] = {}


class DataFound(Model):
    """The data that was read. `sha256` covers the files; null where nothing was read."""

    name: str
    source: DataSource
    sha256: str | None = None
    train_items: int | None = None
    valid_items: int | None = None
    test_items: LeftOutIfNull[int] = None
    weights: Literal["pretrained", "random"] | None = None
    weights_sha256: str | None = None
    distinct_batches: Annotated[int, Field(ge=1)] | None = None
    """Different input batches among the ones that were compared: 1 means a constant batch."""
    looked_at_batches: Annotated[int, Field(ge=1)] | None = None
    """How many were compared: the first ones that came."""


class Phase(Model):
    """One part of the setup: 'import', 'data', 'model', 'first_step', …"""

    name: str
    seconds: Seconds


class Window(Model):
    """The measured host window: a synchronised clock around whole training steps, validation left out."""

    seconds: Annotated[float, Field(gt=0)]
    steps: Annotated[int, Field(ge=1)]
    samples: Annotated[int, Field(ge=1)]


class Epoch(Model):
    """One pass as far as it went. `quality` is the workload's metric after it."""

    index: Annotated[int, Field(ge=1)]
    steps: Annotated[int, Field(ge=0)]
    train_seconds: Seconds
    valid_seconds: Seconds | None = None
    valid_batches: Annotated[int, Field(ge=0)] | None = None
    """Batches that the validation had; null means all of the protocol's."""
    train_loss: Number | None = None
    """The mean over the epoch's steps."""
    smoothed_train_loss: LeftOutIfNull[Number] = None
    """fastai's training loss at the epoch's end: m ÷ (1 − 0.98ⁿ) after all n steps of the fit so far, where m
    begins at 0 and becomes 0.98 · m + 0.02 · loss at each step (its Recorder, as in versions 1 and 2).

    Null where the workload is not fastai's."""
    valid_loss: Number | None = None
    quality: Number | None = None
    complete: bool = True


class Memory(Model):
    """Peak bytes: of the framework's allocator on a device, of the process on a CPU.

    On a CPU `allocated_peak_bytes` is what tensors held in steps after the window, where the workload counts.
    """

    allocated_peak_bytes: int | None = None
    reserved_peak_bytes: int | None = None
    process_peak_bytes: int | None = None


class Protocol(Model):
    """How long the protocol is as published, so that a shorter trial can be projected and never mistaken."""

    steps_per_epoch: Annotated[int, Field(ge=1)]
    epochs: Annotated[int, Field(ge=1)]
    valid_batches: Annotated[int, Field(ge=0)]
    complete: bool
    stopped_by: Literal["protocol", "epochs", "steps", "seconds", "level-held"]
    """What ended the training: of a limit with a least and a most, "seconds" is the most."""


class Flops(Model):
    """One sample's training step: floating-point operations of products and convolutions alone, and bytes."""

    per_sample: Annotated[float, Field(gt=0)] | None = None
    method: str | None = None
    bytes_per_sample: Annotated[float, Field(gt=0)] | None = None
    """What the operations read and write, as if nothing were fused or cached: the memory moves less."""


class KernelTime(Model):
    """A few steps after the window, watched by a profiler: how long at least one kernel was at work."""

    steps: Annotated[int, Field(ge=1)]
    busy_seconds: Annotated[float, Field(gt=0)]


class MessageSize(Model):
    """Timed calls of one message size; a sample is of `calls_per_sample` calls, one after the other."""

    message_bytes: Annotated[int, Field(ge=1)]
    calls_per_sample: Annotated[int, Field(ge=1)]
    sample_us: Packed


class AllReduce(Model):
    """Sums of one message over all ranks, on rank 0's clock; the window is of the fastest size."""

    backend: Literal["nccl", "rccl", "gloo"]
    backend_version: str | None = None
    """Null for gloo, which has none of its own: it comes with torch."""
    sizes: Annotated[tuple[MessageSize, ...], Field(min_length=1)]


class FrameworkUsed(Model):
    """The framework that trained, in a workload that several have."""

    name: Annotated[str, Field(min_length=1, max_length=40)]
    version: Annotated[str, Field(min_length=1, max_length=40)]
    ways: dict[str, Annotated[str, Field(max_length=80)]] = {}
    """By the names of `parallel`, how several devices can share a step; empty where one alone can train."""
    loader: LeftOutIfNull[Annotated[str, Field(max_length=80)]] = None
    """What hands a step its batch."""


class ProgramRun(Model):
    """A published program, as it was run: its copy in this trial had git's id of the tree."""

    name: Name
    commit: Sha1
    tree: Sha1
    command: tuple[Annotated[str, Field(max_length=1000)], ...]
    figure: Literal["step", "run"]
    """Whether its steps are judged, or one figure a run, whose window is its own."""
    clock_ratio: Annotated[float, Field(gt=0)] | None = None
    """The median of seconds between its lines, on our clock, over its own; null where lines come too fast."""
    changed_itself: bool = False
    """Whether it wrote to a file of its own source."""
    processes_left: Annotated[int, Field(ge=0)] = 0
    """Processes that lived on when it had ended, and were ended."""


class OwnProgramRun(Model):
    """A program of the user's own, as it was run."""

    printed_rate: Annotated[float, Field(gt=0)] | None = None
    """The median of the samples a second that it prints: a witness, and no figure of ours."""
    printed_unit: Literal["image", "token", "sample"] | None = None
    terminal: bool = False
    """Whether it was given a terminal, since it showed no progress in a pipe."""
    metric: Number | None = None
    """The last value that its user's pattern found."""
    slices: LeftOutIfNull[Annotated[int, Field(ge=1)]] = None
    """How many it was timed in, as it took turns on its device; null where it had that for itself."""


ProductArithmetic = Literal["fp32-ieee", "tf32", "fp16", "bf16", "fp8"]
"""What a product is computed in."""


class Replay(Model):
    """One computation again and again on the same inputs, which depend on no seed, machine or process."""

    computation: Literal["product", "training-step"]
    arithmetic: ProductArithmetic
    replays: Annotated[int, Field(ge=1)]
    """After the first."""
    differing: Annotated[int, Field(ge=0)]
    """Those with other bits than the first."""
    largest_relative_difference: Number
    """The largest difference of any value in any replay, over the largest value of the first."""
    bound: Annotated[float, Field(gt=0)]
    """What another order of summing may make of it."""
    bits_promised: bool
    """Whether the library promises equal bits, on one card and on another of its model."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """The hash of the first's bits, to hold another process against."""


class MemoryPattern(Model):
    """A pattern, other at every address, all written before any is read; the second pass turns its bits."""

    tested_bytes: Annotated[int, Field(ge=1)]
    passes: Annotated[int, Field(ge=1)]
    wrong_words: Annotated[int, Field(ge=0)]
    """Words of 8 bytes each, in all passes."""


class CardCheck(Model):
    """What was measured before the window, which holds one product without a pause."""

    replays: tuple[Replay, ...]
    memory_pattern: MemoryPattern


class Measurement(Model):
    """out/measurement.json. All step series are aligned: value i of each belongs to the same steps."""

    measurement: Literal[1]
    workload: str
    protocol_name: str
    workload_sha256: str
    title: LeftOutIfNull[Annotated[str, Field(max_length=80)]] = None
    """What the workload calls itself, where it does."""
    about: LeftOutIfNull[Annotated[str, Field(max_length=300)]] = None
    """In a sentence what it measures."""
    framework: LeftOutIfNull[FrameworkUsed] = None
    """Null of a workload that one framework alone has."""
    program: LeftOutIfNull[ProgramRun] = None
    """What the workload `program` ran."""
    own: LeftOutIfNull[OwnProgramRun] = None
    device: DeviceUsed
    versions: dict[str, str | None]
    packages: dict[str, str]
    precision: PrecisionFound
    data: DataFound
    protocol: Protocol
    sample_unit: Literal["image", "token", "byte", "sample", "step"]
    samples_per_step: Annotated[int, Field(ge=1)]
    phases: tuple[Phase, ...]
    window: Window
    steps_together: Annotated[int, Field(ge=1, le=1000, exclude_if=lambda steps: steps == 1)] = 1
    """How many steps end at once, as with a loader of several processes; a value is the sum of theirs."""
    step_us: Packed
    step_clock: Literal["host", "device"] = "host"
    """Whose moments the steps lie between: the host's, having issued each, or the device's, at its end."""
    input_us: Packed | None = None
    """The host's waiting for input before it issued each step."""
    kernels: KernelTime | None = None
    epochs: tuple[Epoch, ...]
    losses: tuple[tuple[int, Number], ...] = ()
    """(step, training loss), thinned to at most 500 points."""
    gradient_norms: tuple[tuple[int, Number], ...] = ()
    """(step, norm of all gradients together, loss scale taken off, before clipping) of the first 50 steps.

    Empty where the loop has no such norm; a step that a dynamic loss scale dropped has none, or none finite.
    """
    quality_name: Literal["accuracy", "perplexity", "loss", "auc"] | None = None
    """"auc" is the mean area under the ROC curve over all labels."""
    test_quality: Number | None = None
    """The metric on the test split after all epochs asked, with the weights of the best validation, or with
    the last where the workload keeps none."""
    test_qualities: Annotated[dict[str, Number | None], Field(exclude_if=lambda found: not found)] = {}
    """The same for each label; null where the test split has no image with it, or none without."""
    memory: Memory
    parallel: Literal["dp", "ddp", "fsdp", "each"] | None = None
    """Several devices: DataParallel, DistributedDataParallel, FSDP, or independent copies at once.

    The series, window and losses are of the whole, those of `each` of rank 0 alone.
    """
    flops: Flops = Flops()
    ceilings: dict[str, Annotated[float, Field(gt=0)]] = {}
    """The most that the device was seen to do, from the workload that looks for it; units in the names."""
    all_reduce: AllReduce | None = None
    """What several devices reach together, from the trial that looks for it."""
    card: LeftOutIfNull[CardCheck] = None
    """What the workload `card` measured before its window."""
    structure: dict[str, int] = {}
    """Counts that need no clock: parameters, trainable parameters, vocabulary, classes."""
    notes: tuple[str, ...] = ()
