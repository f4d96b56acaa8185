"""Takes a screenshot of the server's page with a translated example, in Chromium.

    python hub_cards/space/screenshot.py outputs/mbart25 page.png [--dark] [--width 360]

Needs Chromium and its driver, on Debian: apt-get install chromium chromium-driver.
"""

import base64
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Annotated

import typer
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from typer import Option

from modeling_gtransformer.server.options import ServerOptions
from modeling_gtransformer.server.serve import make_server


BROWSERS = ("chromium", "google-chrome")
SECONDS = 180  # timeout of a page or a translation


@contextmanager
def running_server(checkpoint: str) -> Iterator[str]:
    """Runs a server of the checkpoint in a thread, and yields its address."""
    server = make_server(ServerOptions(model=checkpoint))
    sock = socket.create_server(("127.0.0.1", 0))
    thread = Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def chromium(width: int) -> Iterator[webdriver.Chrome]:
    """Runs a headless browser of this width in CSS pixels, without network."""
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
    paths = [path for path in map(shutil.which, programs) if path]
    if not paths:
        raise FileNotFoundError(f"{programs[0]} is missing: apt-get install chromium chromium-driver")
    return paths[0]


def resize(driver: webdriver.Chrome, width: int, height: int = 900) -> None:
    """Sets the size of the page, which may be narrower than the minimum window."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def open_page(driver: webdriver.Chrome, address: str, dark: bool = False) -> WebElement:
    driver.get(f"{address}?__theme={'dark' if dark else 'light'}")
    return wait_for(driver, "textarea")


def translate(driver: webdriver.Chrome) -> None:
    press(driver, "Translate")
    wait_for(driver, ".confidence")
    press(driver, "Attention of a sentence")
    wait_for(driver, ".bars li")


def wait_for(driver: webdriver.Chrome, selector: str) -> WebElement:
    return WebDriverWait(driver, SECONDS).until(lambda driver: driver.find_element(By.CSS_SELECTOR, selector))


def press(driver: webdriver.Chrome, name: str) -> None:
    """Presses a button with the keyboard. Raises `TimeoutException` if the keyboard does not reach it."""

    def pressed(driver: webdriver.Chrome) -> bool:
        focused = driver.switch_to.active_element
        found = focused.tag_name == "button" and focused.text.startswith(name)
        focused.send_keys(Keys.ENTER if found else Keys.TAB)
        return found

    # The page may replace the focused element at any moment.
    wait = WebDriverWait(driver, 60, poll_frequency=0.01, ignored_exceptions=[StaleElementReferenceException])
    wait.until(pressed, f"The keyboard does not reach the button {name!r}.")


def main(
    checkpoint: str, picture: Path, dark: bool = False, width: Annotated[int, Option(help="CSS pixels.")] = 1100
) -> None:
    """Take a screenshot of the page with a translated example."""
    with running_server(str(Path(checkpoint).resolve())) as address, chromium(width) as driver:
        text = open_page(driver, address, dark)
        press(driver, "Example")
        WebDriverWait(driver, SECONDS).until(lambda _: text.get_attribute("value"))
        translate(driver)
        driver.find_elements(By.CSS_SELECTOR, ".pair .source")[1].send_keys("")
        image = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    picture.write_bytes(base64.b64decode(image["data"]))


if __name__ == "__main__":
    typer.run(main)
