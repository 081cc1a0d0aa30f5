"""One headless Chromium for all pages that tests look at, press and print, told what to do over its pipe."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
SAID = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
"""What stands on the console: a script's words, its errors, and what the browser itself says."""


class Browser:
    """A tab of a running Chromium; `said` is all that its console was told."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._number, self._rest, self._session, self._loaded = 0, b"", {}, False
        self.said: list[str] = []
        tab = self.ask("Target.createTarget", url="about:blank")
        attached = self.ask("Target.attachToTarget", **tab, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends one command of the DevTools protocol and returns its result."""
        self._number += 1
        asked = {"id": self._number, "method": method, "params": parameters, **self._session}
        os.write(self._commands, json.dumps(asked).encode() + b"\0")
        while (answer := self._heard()).get("id") != self._number:
            pass
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def open(self, page: Path, width: int = 1400) -> None:
        """Shows a file in a window of that width, by day."""
        self.resize(width)
        self._loaded = False
        self.ask("Page.navigate", url=page.as_uri())
        while not self._loaded:
            self._heard()

    def resize(self, width: int, *, night: bool = False) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if night else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def run(self, script: str) -> Any:
        """What a script in the page returns."""
        return self.ask("Runtime.evaluate", expression=script, returnByValue=True)["result"]["value"]

    def printed(self) -> bytes:
        """The page as `--print-to-pdf` has it."""
        found = self.ask("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        return base64.b64decode(found["data"])

    def _heard(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._answers, 2**20)
            assert more, "the browser ended"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        heard = json.loads(message)
        self._loaded |= heard.get("method") == "Page.loadEventFired"
        if heard.get("method") in SAID:
            self.said.append(json.dumps(heard["params"]))
        return heard


@contextmanager
def started(folder: Path) -> Iterator[Browser]:
    """A browser with its profile in the folder, until the end of the block."""
    assert CHROMIUM is not None
    (its_commands, commands), (answers, its_answers) = os.pipe(), os.pipe()
    # Chromium reads its commands at 3 and answers at 4.
    line = ["bash", "-c", f'exec "$@" 3<&{its_commands} 4>&{its_answers}', "bash", CHROMIUM, *QUIET]
    line.append(f"--user-data-dir={folder / 'profile'}")
    process = subprocess.Popen(line, pass_fds=(its_commands, its_answers), stderr=subprocess.DEVNULL)
    os.close(its_commands)
    os.close(its_answers)
    try:
        yield Browser(commands, answers)
    finally:
        process.terminate()
        process.wait(60)
        os.close(commands)
        os.close(answers)
