"""A real browser for tests: Chromium without a window, spoken to over a pipe in its DevTools protocol.

Nothing but Chromium itself is needed. `Page` collects console errors, exceptions and requests as they happen.
"""

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
]


class Browser:
    """A Chromium process with an empty profile."""

    def __init__(self, profile: Path) -> None:
        to_browser, our_output = os.pipe()
        our_input, from_browser = os.pipe()

        def as_three_and_four() -> None:
            first, second = os.dup(to_browser), os.dup(from_browser)  # in case one of them is 3 or 4 itself
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(
            [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(3, 4, to_browser, from_browser),
            preexec_fn=as_three_and_four,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.output, self.input = os.fdopen(our_output, "wb"), os.fdopen(our_input, "rb")
        self.number, self.unread = 0, b""
        self.events: list[dict[str, Any]] = []

    def read(self) -> dict[str, Any]:
        while b"\0" not in self.unread:
            part = os.read(self.input.fileno(), 1 << 20)
            if not part:
                raise RuntimeError("the browser has gone")
            self.unread += part
        message, _, self.unread = self.unread.partition(b"\0")
        return json.loads(message)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self.output.write(json.dumps(message).encode() + b"\0")
        self.output.flush()
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, url: str, width: int = 1200, height: int = 900, dark: bool = False) -> "Page":
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session, url, width, height, dark)

    def close(self) -> None:
        self.output.close()
        self.process.terminate()
        self.process.wait()
        self.input.close()


class Page:
    """One tab, loaded."""

    def __init__(self, browser: Browser, session: str, url: str, width: int, height: int, dark: bool) -> None:
        self.browser, self.session = browser, session
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events()):
            self.browser.events.append(self.browser.read())

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def events(self) -> list[dict[str, Any]]:
        return [event for event in self.browser.events if event.get("sessionId") == self.session]

    def run(self, script: str) -> Any:
        """The value of an expression, promises awaited."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """A key as if somebody pressed it."""
        for kind in ("keyDown", "keyUp"):
            own = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **own)

    def errors(self) -> list[str]:
        """What the console shows in red, and what scripts threw."""
        self.run("1")  # whatever happened has been reported by now
        found = []
        for event in self.events():
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(parameters["exceptionDetails"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
                found.append(str(parameters["args"]))
            elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Every address that was asked for."""
        sent = [event for event in self.events() if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def screenshot(self, path: Path, full: bool = True) -> None:
        """A picture, for people to look at."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self) -> bytes:
        """The page as it prints."""
        return base64.b64decode(self.call("Page.printToPDF")["data"])


def change(page: Page, name: str, value: str) -> float:
    """Set a control as a person does, and return the milliseconds until the page is laid out again."""
    milliseconds: float = page.run(
        f"""(() => {{
            const control = document.getElementById({name!r}), value = {value!r};
            document.getElementById("count").scrollIntoView();
            if (control.type === "checkbox") control.checked = Boolean(value); else control.value = value;
            const start = performance.now();
            control.dispatchEvent(new Event("input", {{bubbles: true}}));
            document.body.getBoundingClientRect();
            return performance.now() - start;
        }})()"""
    )
    return milliseconds
