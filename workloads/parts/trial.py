"""One trial inside its process: what is asked, where it writes, how it ends.

A workload imports this first, then its framework, and ends with `main(run)`. `run(trial)`
returns the measurement's own part as a dict; `main` adds what every workload reports alike and writes
`measurement.json` last, whole or not at all. Whatever goes wrong becomes `failure.json` and exit code 1.

Standard library and Python 3.7 syntax only: the oldest frameworks run there.
"""

import contextlib
import errno
import hashlib
import json
import math
import os
import platform
import signal
import subprocess
import sys
import threading
import time
import traceback

STARTED = time.perf_counter()
IMAGE_MARK = "/etc/gpudyno/environment.json"
"""What every image has."""
RESERVED_BYTES = 16384
SIDE = "side"
"""An option of every workload that none acts on: it distinguishes trials that are equal otherwise."""
DISK_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
OUT_OF_MEMORY_WORDS = (
    "out of memory",
    "outofmemory",
    "can't allocate memory",
    "cannot allocate memory",
    "alloc_failed",
    "allocfailed",
)
FULL_CARD_WORDS = (
    "unable to find an engine",
    "cudnn_status_not_supported",
    "cudnn_status_internal_error",
    "cudnn_status_execution_failed",
    "cublas_status_not_initialized",
    "cublas_status_internal_error",
    "miopenstatusinternalerror",
    "miopenstatusunknownerror",
    "workspace",
)
"""What libraries say that get no workspace, and of other faults too: a card as full as this decides."""
FULL_CARD_SHARE = 0.85


class Failed(Exception):
    """An end whose reason the workload knows; `reason` is one of the record's words."""

    def __init__(self, reason, message):
        super(Failed, self).__init__(message)
        self.reason = reason


class TrialProcess(object):
    """What is asked, read from `trial.json`, and the files that the trial writes as it goes."""

    def __init__(self, environ):
        self.data_folder = environ.get("GPUDYNO_DATA", "/data")
        self.out_folder = environ.get("GPUDYNO_OUT", "/out")
        self.stage_now = "start"
        self.phases = []
        self.paused_seconds = 0.0
        events = os.path.join(self.out_folder, "events.jsonl")
        self._events = open(events, "a", encoding="utf-8")  # noqa: SIM115
        self._ending = threading.Lock()
        # Space for the failure on a disk that fills up meanwhile.
        self._reserve = os.path.join(self.out_folder, ".reserve")
        with open(self._reserve, "wb") as file:
            file.write(bytes(RESERVED_BYTES))
        in_folder = environ.get("GPUDYNO_IN", "/in")
        with open(os.path.join(in_folder, "trial.json"), encoding="utf-8") as file:
            given = json.load(file)
        self.id = given["id"]
        self.seed = given["seed"]
        self.timeout_seconds = given["timeout_seconds"]
        self.asked = given["asked"]
        self.variant = self.asked["variant"]
        self.limit = self.variant.get("limit") or {}

    def options(self, defaults):
        """Return the variant's options over the defaults; refuses a name or a type that these do not have."""
        given = dict(self.variant.get("options") or {})
        given.pop(SIDE, None)
        for name, value in given.items():
            if name not in defaults:
                raise Failed("unsupported", _one_of("option", name, defaults))
            whole = type(defaults[name]) is float and type(value) is int
            if type(value) is not type(defaults[name]) and not whole:
                kind = type(defaults[name]).__name__
                raise Failed("unsupported", "option '%s' is %r where it must be %s" % (name, value, kind))
        return dict(defaults, **given)

    def choose(self, what, name, choices):
        """Return what `choices` has for a name; raises Failed, listing the choices, where it has none."""
        if name not in choices:
            raise Failed("unsupported", _one_of(what, name, choices))
        return choices[name] if isinstance(choices, dict) else name

    def valid_batches(self, whole):
        """Return how many of a validation's `whole` batches the limit leaves."""
        capped = self.limit.get("valid_batches")
        return whole if capped is None else min(whole, capped)

    def stage(self, name):
        """Say which part of the work has begun: the one before it has ended."""
        self.stage_now = name
        self.event("stage", stage=name)

    @contextlib.contextmanager
    def phase(self, name):
        """Time one part of the setup, apart from the measured window."""
        begin = time.perf_counter()
        yield
        self.phase_took(name, time.perf_counter() - begin)

    def phase_took(self, name, seconds):
        """Note a part of the setup that was timed elsewhere and ends now."""
        self.phases.append({"name": name, "seconds": seconds})

    def event(self, kind, **fields):
        """Append one line to `events.jsonl`; a reader may follow it."""
        fields["event"] = kind
        self._events.write(json.dumps(finite(fields), sort_keys=True) + "\n")
        self._events.flush()

    def succeed(self, measurement):
        """Write the measurement whole or not at all."""
        with self._ending:
            write_whole(os.path.join(self.out_folder, "measurement.json"), measurement)
            os.remove(self._reserve)

    def end(self, reason, message):
        """Write the failure and leave with exit code 1."""
        with self._ending:
            self._fail(reason, message)
            sys.exit(1)

    def _fail(self, reason, message):
        with contextlib.suppress(OSError):
            os.remove(self._reserve)
        failure = {"stage": self.stage_now, "reason": reason, "message": message[:2000]}
        write_whole(os.path.join(self.out_folder, "failure.json"), failure)

    def watch_time(self):
        """End the process hard once the trial's time is over, even when it hangs in foreign code."""
        timer = threading.Timer(max(0.0, self.seconds_left()), self._time_is_over)
        timer.daemon = True
        timer.start()

    def seconds_left(self):
        """Return how much of its time is left; pauses do not count."""
        return self.timeout_seconds + self.paused_seconds - (time.perf_counter() - STARTED)

    def _time_is_over(self):
        if self.seconds_left() > 0:
            self.watch_time()
            return
        # A trial that is already writing its measurement has made it.
        if not self._ending.acquire(False):
            return
        message = "the trial took longer than its limit of %g s" % self.timeout_seconds
        try:
            self._fail("timeout", message)
            sys.stderr.write(message + "\n")
            sys.stderr.flush()
        finally:
            os._exit(1)


def main(run):
    """Run a workload as a process: exit code 0 with a measurement, 1 with a failure."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    trial = TrialProcess(os.environ)
    trial.phase_took("import", time.perf_counter() - STARTED)
    trial.watch_time()
    try:
        trial.stage("setup")
        measurement = run(trial)
        measurement.update(
            measurement=1,
            workload=trial.asked["workload"],
            protocol_name=trial.asked["protocol"],
            workload_sha256=sources_sha256(),
            packages=packages(),
            phases=trial.phases,
        )
        trial.event("end")
        trial.succeed(measurement)
    except Exception as error:
        # The log may be on the disk that is full: what it cannot take must not keep the failure from it.
        with contextlib.suppress(OSError):
            # Where a failure was raised from another error, the log ends with that error.
            cause = error.__cause__ if isinstance(error, Failed) and error.__cause__ else error
            traceback.print_exception(type(cause), cause, cause.__traceback__)
        trial.end(*failure_of(error))


def sources_sha256():
    """Return the hex digest over the workloads' files that this process imported."""
    folder = _workloads_folder()
    loaded = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    paths = {os.path.abspath(path) for path in loaded if path.endswith(".py")}
    sources = {os.path.relpath(path, folder): path for path in paths if path.startswith(folder + os.sep)}
    digest = hashlib.sha256()
    for name, path in sorted(sources.items()):
        with open(path, "rb") as file:
            content = file.read()
        digest.update(("%s %d\n" % (name.replace(os.sep, "/"), len(content))).encode("utf-8") + content)
    return digest.hexdigest()


def _workloads_folder():
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def failure_of(error):
    """Return the record's word for an exception, and one line about it.

    Its class and its place in the workload are public. Its text, which may name a folder or a person, is in
    the log alone.
    """
    message = type(error).__name__ + place_of(error)
    if isinstance(error, Failed):
        return error.reason, str(error)
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        return "disk-full", message
    names = [kind.__name__ for kind in type(error).__mro__]
    words = str(error).lower() if isinstance(error, RuntimeError) else ""
    out_of_memory = any(phrase in words for phrase in OUT_OF_MEMORY_WORDS)
    if out_of_memory or "OutOfMemoryError" in names or "MemoryError" in names:
        return "out-of-memory", message
    if any(phrase in words for phrase in FULL_CARD_WORDS):
        share = reserved_share()
        if share >= FULL_CARD_SHARE:
            return "out-of-memory", "%s (%.0f%% of the card was reserved)" % (message, 100 * share)
    return "error", message


def place_of(error):
    """Return the last line of a workload that it went through, as " at word_lm.py, line 12"; else nothing."""
    own = os.path.abspath(__file__)
    folder = _workloads_folder() + os.sep
    frames = [(each[0], each[1]) for each in traceback.extract_tb(error.__traceback__)]
    lines = [(path, line) for path, line in frames if path != own and path.startswith(folder)]
    return " at %s, line %d" % (lines[-1][0][len(folder) :], lines[-1][1]) if lines else ""


def reserved_share():
    """Return the share of the fullest card's memory that torch reserved; 0 without torch or a card."""
    torch = sys.modules.get("torch")
    try:
        cards = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
        whole = [float(torch.cuda.get_device_properties(card).total_memory) for card in cards]
        return max([torch.cuda.max_memory_reserved(card) / whole[card] for card in cards] or [0.0])
    except (AttributeError, RuntimeError):
        return 0.0


def write_whole(path, value):
    """Write JSON under a temporary name, then renames: a reader sees all of it or nothing."""
    temporary = path + ".part"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(finite(value), file, sort_keys=True, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise


def finite(value):
    """Return the same value with "nan", "inf" and "-inf" for the numbers that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


def versions():
    """Return the versions that are no package: the interpreter, the system, the C library.

    In an image also a hash of Debian's packages, which no lock names.
    """
    libc = " ".join(platform.libc_ver()).strip()
    found = {"python": platform.python_version(), "system": platform.system(), "libc": libc or None}
    installed = debian_packages() if os.path.exists(IMAGE_MARK) else None
    return dict(found, debian_packages=installed) if installed else found


def debian_packages():
    """Return a hash of the names and versions of all of Debian's packages; None where none can be listed."""
    try:
        listed = subprocess.check_output(["dpkg-query", "--show"], stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return None
    return hashlib.sha256(listed).hexdigest()[:16]


def processor_name():
    """Return what the system calls the processor."""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.lower().startswith(("model name", "cpu model", "hardware")):
                    return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def packages():
    """Return installed packages and their versions, by normalised name."""
    try:
        from importlib import metadata

        named = [(package.metadata["Name"], package.version) for package in metadata.distributions()]
    except ImportError:
        # Python 3.7 has setuptools for it.
        import pkg_resources

        named = [(package.project_name, package.version) for package in pkg_resources.working_set]
    versions_by_name = {}
    for name, version in named:
        if name:
            versions_by_name.setdefault(name.lower().replace("_", "-").replace(".", "-"), version)
    return versions_by_name


def _one_of(what, name, choices):
    there = ", ".join(sorted(map(str, choices))) or "none"
    return "%s '%s' is not known; there are: %s" % (what, name, there)
