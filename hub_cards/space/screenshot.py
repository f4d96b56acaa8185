"""A picture of the page with a translated example, taken by Chromium.

    python hub_cards/space/screenshot.py outputs/mbart25 page.png [--dark] [--width 360]

Chromium and its driver are Debian's: apt-get install chromium chromium-driver.
"""

import base64
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated
from urllib.error import URLError

import typer
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from typer import Option


EXAMPLE = "Hello, how can I help you?\nI would like to order a pizza.\nWhat kind of pizza would you like?"
APP = Path(__file__).with_name("app.py")
PACKAGE = APP.parents[2]
BROWSERS = ("chromium", "google-chrome")
SECONDS = 180  # that a page or a translation may take


@contextmanager
def running_app(checkpoint: str) -> Iterator[str]:
    """The address of the app, which runs in its own process.

    Raises:
        RuntimeError: the app ended, or does not answer.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {"GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "False"}
    own["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))
    address = f"http://127.0.0.1:{port}/"
    app = subprocess.Popen([sys.executable, str(APP), checkpoint], env=os.environ | own)
    try:
        deadline = time.monotonic() + SECONDS
        while not _answers(address):
            if app.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"The app does not run; its exit status is {app.poll()}.")
            time.sleep(0.2)
        yield address
    finally:
        app.terminate()
        app.wait()


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address):
            return True
    except URLError:
        return False


@contextmanager
def chromium(width: int) -> Iterator[webdriver.Chrome]:
    """A browser without a window, of this width in CSS pixels, that reaches this computer only."""
    options = webdriver.ChromeOptions()
    options.binary_location = _found(*BROWSERS)
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    driver = webdriver.Chrome(options, Service(_found("chromedriver")))
    try:
        resize(driver, width, 900)
        yield driver
    finally:
        driver.quit()


def _found(*programs: str) -> str:
    """The path of the first of the programs that is installed."""
    paths = [path for path in map(shutil.which, programs) if path]
    if not paths:
        raise FileNotFoundError(f"{programs[0]} is missing: apt-get install chromium chromium-driver")
    return paths[0]


def resize(driver: webdriver.Chrome, width: int, height: int = 900) -> None:
    """Windows have a least width, the page has none."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def translate_text(driver: webdriver.Chrome, address: str, text: str, dark: bool = False) -> None:
    """Opens the page, types a text, presses the button with the keyboard, opens the attention and waits for it."""
    driver.get(f"{address}?__theme={'dark' if dark else 'light'}")
    wait = WebDriverWait(driver, SECONDS)
    box = wait.until(lambda driver: driver.find_element(By.TAG_NAME, "textarea"))
    box.send_keys(text)
    press(driver, "Translate")
    wait.until(lambda driver: driver.find_elements(By.CSS_SELECTOR, ".pair"))
    press(driver, "Attention of a sentence")
    wait.until(lambda driver: driver.find_elements(By.CSS_SELECTOR, ".bars li"))


def press(driver: webdriver.Chrome, name: str) -> None:
    """A button, with the keyboard.

    Raises:
        RuntimeError: the keyboard does not reach it.
    """
    for _ in range(60):
        focused = driver.switch_to.active_element
        if focused.tag_name == "button" and focused.text.startswith(name):
            focused.send_keys(Keys.ENTER)
            return
        focused.send_keys(Keys.TAB)
    raise RuntimeError(f"The keyboard does not reach the button {name!r}.")


def main(
    checkpoint: str, picture: Path, dark: bool = False, width: Annotated[int, Option(help="CSS pixels.")] = 1100
) -> None:
    """Take a picture of the page with a translated example."""
    with running_app(checkpoint) as address, chromium(width) as driver:
        translate_text(driver, address, EXAMPLE, dark)
        driver.find_elements(By.CSS_SELECTOR, ".pair .source")[1].send_keys("")
        image = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    picture.write_bytes(base64.b64decode(image["data"]))


if __name__ == "__main__":
    typer.run(main)
