"""A headless Chromium, driven through its debugging protocol: what a reader sees and presses."""

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 30  # no step of a test takes that long

READY = """new Promise((done) => {
  const look = () => (document.body?.dataset.state ?? "loading") === "loading"
    ? setTimeout(look, 5) : done(document.body.dataset.state);
  look();
})"""


def find_chromium() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One tab. `problems` collects what a console would show; `requested` every address fetched."""

    def __init__(self, program: str, profile: Path) -> None:
        self.process = subprocess.Popen(
            [
                program,
                *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *("--no-first-run", "--disable-background-networking", "--remote-debugging-port=0"),
                *("--remote-allow-origins=*", f"--user-data-dir={profile}", "about:blank"),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if match := re.search(r"listening on (ws://\S+)", line):
                break
        else:
            raise AssertionError(f"{program} ended without listening")
        self.socket = websocket.create_connection(match[1], timeout=SECONDS)
        self.session: str | None = None
        self.sent = 0
        self.problems: list[str] = []
        self.requested: list[str] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(SECONDS)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; events that come before it are kept."""
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": parameters}
        self.socket.send(
            json.dumps(message | ({"sessionId": self.session} if self.session else {}))
        )
        while (answer := json.loads(self.socket.recv())).get("id") != self.sent:
            self._note(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _note(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.problems.append(json.dumps(parameters["exceptionDetails"]))
            case "Log.entryAdded":
                self.problems.append(parameters["entry"]["text"])
            case "Page.javascriptDialogOpening":
                self.problems.append(f"dialog: {parameters['message']}")
            case "Network.requestWillBeSent":
                self.requested.append(parameters["request"]["url"])

    def run(self, script: str) -> Any:
        """Value of a JavaScript expression, a promise's once it is kept."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def open(self, path: Path, address: str = "") -> str:
        """Load a file, anew even where only the address after # differs, and wait until ready."""
        self.problems.clear()
        self.requested.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=f"{path.resolve().as_uri()}{address}")
        return self.run(READY)

    def screen(self, width: int, height: int, *, dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def press(self, key: str, code: int = 0, text: str = "") -> None:
        event = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", **event, **({"text": text} if text else {})
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def text(self, selector: str) -> str:
        return self.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def texts(self, selector: str) -> list[str]:
        return self.run(
            f"[...document.querySelectorAll({json.dumps(selector)})].map((n) => n.innerText)"
        )

    def choose(self, control: str, value: str) -> None:
        """Choose an option of a select, as its change event tells the page."""
        self.run(
            f"(() => {{ const c = document.getElementById({json.dumps(control)});"
            f"c.value = {json.dumps(value)}; if (c.value !== {json.dumps(value)}) throw 'no such';"
            "c.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )

    def picture(self, path: Path, *, whole: bool = False) -> None:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))
