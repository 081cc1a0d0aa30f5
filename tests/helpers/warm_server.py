"""An interpreter that has imported a framework once, and forks for each script that it is told to run.

Importing a framework takes seconds of a processor, which a fork does not pay again. Each script is a process
of its own with its own arguments, variables and working folder, and imports the workloads' own modules by
itself. Called with the names of modules to import; then reads a line of JSON for each script, and answers
with a line that has its exit code.
"""

import gc
import importlib
import json
import os
import runpy
import sys
import time
from pathlib import Path

KEPT = {}
"""The workloads' modules that have generated a data set, by name."""
GENERATED = {}
"""What they generated, by what it was made of."""


def generate(workloads, name):
    """Generates a data set before the fork, so that no script has to."""
    if (workloads, name) in GENERATED:
        return
    sys.modules.update(KEPT)
    sys.path.insert(0, workloads)
    try:
        datasets = importlib.import_module("parts.datasets")
        if not KEPT:
            for maker in ("_generated_corpus", "_generated_images", "_generated_reviews"):
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
        sizes = datasets.WIKITEXT_2_TOKENS, datasets.WIKITEXT_2_TYPES, datasets.IMDB_REVIEWS
        key = repr((make.__name__, asked, sizes))
        if key not in GENERATED:
            GENERATED[key] = make(*asked)
        return GENERATED[key]

    return made


def become(asked):
    """Makes this process the one that runs the script; returns what runs it."""
    os.environ.clear()
    os.environ.update(asked["environ"])
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
    first = asked["arguments"][0]
    sys.argv[:] = asked["arguments"]
    sys.path[0] = "" if first == "-c" else str(Path(first).resolve().parent)
    sys.path[1:1] = [folder for folder in asked["environ"].get("PYTHONPATH", "").split(os.pathsep) if folder]
    if first != "-c":
        return lambda: runpy.run_path(first, run_name="__main__")
    code = compile(sys.argv.pop(1), "<string>", "exec")
    main = vars(sys.modules["__main__"])
    return lambda: exec(code, {"__name__": "__main__", "__builtins__": main["__builtins__"]})


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
        # The script's own end is this process's: what it leaves to be done at exit is done.
        script()
