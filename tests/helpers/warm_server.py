"""An interpreter that has imported a framework once, and forks for each script that it is told to run.

Importing a framework takes seconds of a processor, which a fork does not pay again. Each script is a process
of its own with its own arguments, variables and working folder, and imports the workloads' own modules by
itself. Called with the names of modules to import; then reads a line of JSON for each script, and answers
with a line that has its exit code.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

KEPT = {}
"""The workloads' modules that have generated a data set, by name."""
GENERATED = {}
"""What they generated, by what it was made of."""
AGENT = "torch.distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler"
PATH = list(sys.path[1:])


def generate(workloads, name):
    """Generates a data set before the fork, so that no script has to."""
    if (workloads, name) in GENERATED:
        return
    sys.modules.update(KEPT)
    sys.path.insert(0, workloads)
    try:
        datasets = importlib.import_module("parts.inputs.datasets")
        if not KEPT:
            for maker in ("_generated_corpus", "_generated_images"):
                setattr(datasets, maker, remembered(datasets, getattr(datasets, maker)))
        getattr(datasets, name)("", "generated")
        GENERATED[workloads, name] = True
    finally:
        sys.path.remove(workloads)
        KEPT.update({each: sys.modules.pop(each) for each in list(sys.modules) if own(each)})


def own(module):
    return module == "parts" or module.startswith("parts.")


def remembered(datasets, make):
    def made(*asked):
        sizes = datasets.WIKITEXT_2_TOKENS, datasets.WIKITEXT_2_TYPES
        key = repr((make.__name__, asked, sizes))
        if key not in GENERATED:
            GENERATED[key] = make(*asked)
        return GENERATED[key]

    return made


def become(asked):
    """Makes this process the one that runs the script; returns what runs it."""
    os.chdir(asked["folder"])
    for number, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, asked["stdout"], os.O_WRONLY),
        (2, asked["stderr"], os.O_WRONLY),
    ):
        opened = os.open(path, flags)
        os.dup2(opened, number)
        os.close(opened)
    if asked["generated"]:
        sys.modules.update(KEPT)
        sys.modules["parts.trial"].STARTED = time.perf_counter()
    if AGENT in sys.modules:
        sys.modules[AGENT].Popen = Forked
    first = settle(asked["arguments"], asked["environ"])
    if first != "-c":
        return lambda: runpy.run_path(first, run_name="__main__")
    code = compile(sys.argv.pop(1), "<string>", "exec")
    main = vars(sys.modules["__main__"])
    return lambda: exec(code, {"__name__": "__main__", "__builtins__": main["__builtins__"]})


def settle(arguments, environ):
    """Gives this process its variables, arguments and path; returns its first argument."""
    os.environ.clear()
    os.environ.update(environ)
    tempfile.tempdir = None
    sys.argv[:] = arguments
    first = "" if arguments[0] == "-c" else str(Path(arguments[0]).resolve().parent)
    sys.path[:] = [first, *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep)), *PATH]
    return arguments[0]


class Forked(subprocess.Popen):
    """A rank as torch's agent starts it, which forks the launcher and imports the workload anew."""

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *more):
        self.pid = os.fork()
        self._child_created = True
        if self.pid:
            return
        code = 1
        try:
            os.setsid()
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)
            folders = [folder for folder in sys.path if folder and folder not in PATH]
            for name, loaded in list(sys.modules.items()):
                if (getattr(loaded, "__file__", None) or "").startswith(tuple(folders)):
                    del sys.modules[name]
            script = settle(list(args[2:]), env)
            code = ended(lambda: runpy.run_path(script, run_name="__main__"))
        finally:
            # What the launcher has to do at its end is not this process's.
            leave(code)


def ended(script):
    """Runs a script to its end; returns its exit code."""
    try:
        script()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def leave(code):
    """Ends this process without taking its memory apart, most of which the server has too."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def serve():
    """Answers until the input ends; in a forked process returns what is to be run."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in iter(sys.stdin.readline, ""):
        asked = json.loads(line)
        if asked["generated"]:
            generate(*asked["generated"])
        gc.freeze()
        pid = os.fork()
        if not pid:
            answers.close()
            return become(asked)
        status = os.waitpid(pid, 0)[1]
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        answers.write(json.dumps({"exit_code": code}) + "\n")
        answers.flush()
    return None


if __name__ == "__main__":
    for module in sys.argv[1:]:
        importlib.import_module(module)
    script = serve()
    if script is not None:
        code = ended(script)
        threading._shutdown()
        atexit._run_exitfuncs()
        leave(code)
