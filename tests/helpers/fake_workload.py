"""A workload without a framework: it sleeps, and writes what a real one would. Its figures mean nothing."""

import json
import os
import sys
import time
from pathlib import Path

MODELS = ("net", "folders", "clock", "eager", "compiled")
"""What plans call it for; it trains neither."""
INPUT, OUTPUT = (Path(os.environ.get(name, "")) for name in ("GPUDYNO_IN", "GPUDYNO_OUT"))


def event(**fields):
    with (OUTPUT / "events.jsonl").open("a") as file:
        file.write(json.dumps(fields) + "\n")


def main():
    trial = json.loads((INPUT / "trial.json").read_text())
    asked, options = trial["asked"], trial["asked"]["variant"]["options"]
    steps = 20
    event(event="stage", stage="train")
    for step in range(steps):
        time.sleep(options.get("step_seconds", 0.001))
        event(event="progress", done=step + 1, total=steps, unit="step")
    for _ in range(options.get("printed_bytes", 0) // 1000):
        print("x" * 999)
    ending = options.get("ending", "measure")
    if ending == "out-of-memory" or asked["variant"]["batch_size"] > options.get("capacity", sys.maxsize):
        reported = {"stage": "train", "reason": "out-of-memory", "message": "it does not fit"}
        (OUTPUT / "failure.json").write_text(json.dumps(reported))
        sys.exit(1)
    if ending == "silence":
        print(f"a last word from {Path.home()} in {OUTPUT}")
        sys.exit(7)
    text = json.dumps(measurement(asked, steps))
    if ending == "rubbish":
        text = text[: len(text) // 2]
    if ending == "other precision":
        text = text.replace('"label": "fp32-ieee"', '"label": "amp-bf16"')
    part = OUTPUT / ".measurement.part"
    part.write_text(text)
    part.rename(OUTPUT / "measurement.json")


def measurement(asked, steps):
    return {
        "measurement": 1,
        "workload": asked["workload"],
        "protocol_name": asked["protocol"],
        "workload_sha256": "0" * 64,
        "device": {"kind": "cpu", "name": "a stand-in"},
        "versions": {"python": sys.version.split()[0]},
        "packages": {},
        "precision": {
            "label": asked["variant"]["precision"],
            "output_dtypes": {"float32": 1},
            "parameter_dtypes": {"float32": 1},
            "method": "none",
        },
        "data": {"name": "none", "source": asked["data"]},
        "protocol": {
            "steps_per_epoch": steps,
            "epochs": 1,
            "valid_batches": 0,
            "complete": True,
            "stopped_by": "protocol",
        },
        "sample_unit": "sample",
        "samples_per_step": asked["variant"]["batch_size"],
        "phases": [{"name": "import", "seconds": 0.0}],
        "window": {
            "seconds": 0.001 * steps,
            "steps": steps,
            "samples": steps * asked["variant"]["batch_size"],
        },
        "step_us": [1000] * steps,
        "epochs": [{"index": 1, "steps": steps, "train_seconds": 0.001 * steps, "train_loss": 1.0}],
        "memory": {},
    }


if __name__ == "__main__":
    main()
