"""A headless Chromium: what a reader sees and presses.

Selenium drives it: its protocol is the W3C's, and browsers ship their own end of it.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from selenium.webdriver import ActionChains, Chrome, ChromeOptions, ChromeService

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 30  # no step of a test takes that long
FLAGS = ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars", "no-first-run")
FLAGS += ("disable-background-networking", "disable-dev-shm-usage")

# Until the page and, where it is one of slides, reveal.js are there; the explorer names its state.
READY = """new Promise((done) => {
  const look = () => document.readyState === "complete" && (!window.Reveal || Reveal.isReady())
    && document.body.dataset.state !== "loading" ? done(document.body.dataset.state)
    : setTimeout(look, 5);
  look();
})"""


def find_programs() -> tuple[str, str] | None:
    """Paths of a browser and of its driver, if both are here."""
    browser = next(filter(None, map(shutil.which, PROGRAMS)), None)
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


class Browser:
    """One tab."""

    def __init__(self, program: str, driver: str) -> None:
        options = ChromeOptions()
        options.binary_location = program
        for flag in FLAGS:
            options.add_argument(f"--{flag}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        # With the path of the driver Selenium looks for none in the network.
        self.driver = Chrome(options, ChromeService(driver))
        self.driver.set_script_timeout(SECONDS)

    def close(self) -> None:
        self.driver.quit()

    def run(self, expression: str) -> Any:
        """Value of a JavaScript expression, a promise's once it is kept."""
        return self.driver.execute_script(f"return ({expression})")

    def open(self, path: Path, address: str = "") -> str | None:
        """Load a file, anew even where only the address after # differs, and wait until ready.

        Returns the state that the page names, if it does. A dialog is an error.
        """
        self.driver.get("about:blank")
        self.problems()
        self.requested()
        self.driver.get(f"{path.resolve().as_uri()}{address}")
        return self.run(READY)

    def problems(self) -> list[str]:
        """Messages of the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requested(self) -> list[str]:
        """Every address fetched, since it was last asked for."""
        log = self.driver.get_log("performance")
        events = [json.loads(entry["message"])["message"] for entry in log]
        fetched = [each for each in events if each["method"] == "Network.requestWillBeSent"]
        return [each["params"]["request"]["url"] for each in fetched]

    def screen(self, width: int, height: int) -> None:
        shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)

    def medium(self, name: str) -> None:
        """Show the page as on paper ("print") or, with "", as on the screen."""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": name})

    def press(self, keys: str) -> None:
        """Type into what has the focus."""
        ActionChains(self.driver).send_keys(keys).perform()

    def text(self, selector: str) -> str:
        return self.run(f"document.querySelector({json.dumps(selector)}).innerText")
