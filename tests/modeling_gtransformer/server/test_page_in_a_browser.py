"""The page in a browser: by keyboard, dark, narrow, with errors in words, and closed while it translates."""

import shutil
import threading
import time

import pytest


pytest.importorskip("gradio")
pytest.importorskip("selenium", reason="the driver package selenium is not installed")

from hub_cards.space import screenshot


for programs in (screenshot.BROWSERS, ("chromedriver",)):
    if not any(map(shutil.which, programs)):
        pytest.skip("needs a browser: apt-get install chromium chromium-driver", allow_module_level=True)

TEXT = "the cat sleeps\nit is <b>old</b> & ${1+1} {{value}}\n" + "z" * 150
# Of every sentence, the contrast of its text and its background as WCAG defines it.
CONTRASTS = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
const luminance = color => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(value => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
return [...document.querySelectorAll(".pair p, .pair .confidence")].map(element => {
  const behind = getComputedStyle(element.closest("p")).backgroundColor;
  const [low, high] = [getComputedStyle(element).color, behind].map(luminance).sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
});
"""


@pytest.fixture
def browser():
    with screenshot.chromium(1100) as driver:
        yield driver


def test_a_translation(listen, checkpoint, browser, tmp_path):
    _, address = listen(checkpoint, page=True, splitter="line")

    def find(selector):
        return browser.find_elements("css selector", selector)

    def shadows():
        return [(source.value_of_css_property("box-shadow") != "none") for source in find(".pair p")]

    screenshot.open_page(browser, address).send_keys(TEXT)
    screenshot.translate(browser)
    assert [source.text for source in find(".pair .source")] == TEXT.split("\n")
    assert len(find(".pair .target .confidence")) == 3 and len(find(".bars")) == 3
    assert not find(".pair b")
    warning = "It was translated in"
    wait = screenshot.WebDriverWait(browser, 60)
    wait.until(lambda _: warning in browser.find_element("tag name", "body").text)
    downloads = [link.text for link in find("a[download], button") if link.text.startswith("Download")]
    assert downloads == ["Download TXT", "Download TMX", "Download JSONL"]

    # With the keyboard: a sentence lights up with its translation, and no other pair does.
    assert not any(shadows())
    browser.execute_script("arguments[0].focus()", find(".pair .source")[0])
    assert shadows() == [True, True, False, False, False, False]
    for _ in range(2):
        browser.switch_to.active_element.send_keys("\ue004")  # tab
    assert browser.switch_to.active_element == find(".pair .source")[1]
    assert shadows() == [False, False, True, True, False, False]
    assert min(browser.execute_script(CONTRASTS)) >= 4.5

    (tmp_path / "broken.docx").write_text("not a Word document")
    find("input[type=file]")[0].send_keys(str(tmp_path / "broken.docx"))
    wait.until(lambda _: "broken" in browser.find_element("tag name", "body").text)
    screenshot.press(browser, "Translate")
    words = "The document cannot be translated: not a Word document"
    wait.until(lambda _: words in browser.find_element("tag name", "body").text)
    assert "Traceback" not in browser.page_source

    screenshot.open_page(browser, address, dark=True).send_keys(TEXT)
    screenshot.translate(browser)
    assert find("body.dark")
    assert min(browser.execute_script(CONTRASTS)) >= 4.5

    screenshot.resize(browser, 360)
    source, target = find(".pair p")[:2]
    wait.until(lambda _: target.location["y"] > source.location["y"])
    widths = "return [document.documentElement, ...document.querySelectorAll('.pair p')].map(e => e.scrollWidth)"
    assert max(browser.execute_script(widths)) <= 360


def test_a_tab_that_is_closed_in_the_middle(listen, checkpoint, browser):
    """Its job, which would never end, ends at its next batch; that of another tab goes on."""
    server, address = listen(checkpoint, page=True, splitter="line", segment_sentences=1)
    service = server.config.app.state.service
    pipeline, ended = service.scheduler.pipeline, threading.Event()
    translate_in_steps = pipeline.translate_in_steps

    def endless_if_long(documents, **options):
        steps = translate_in_steps(documents, **options)
        if len(documents[0].sentences) < 3:
            return (yield from steps)
        try:
            yield next(steps)
            while True:
                time.sleep(0.01)
                yield 0
        finally:
            ended.set()

    pipeline.translate_in_steps = endless_if_long
    screenshot.open_page(browser, address).send_keys("the cat\nit is old\nit sleeps")
    screenshot.press(browser, "Translate")
    screenshot.wait_for(browser, ".pair")  # the first of three sentences
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    screenshot.open_page(browser, address).send_keys("it is\nold")
    screenshot.translate(browser)
    second = browser.current_window_handle
    assert not ended.is_set() and service.under_way == 1

    browser.switch_to.window(first)
    assert len(browser.find_elements("css selector", ".pair")) == 1
    browser.close()
    assert ended.wait(60)
    browser.switch_to.window(second)
    screenshot.translate(browser)
    assert len(browser.find_elements("css selector", ".pair")) == 2
    screenshot.WebDriverWait(browser, 60).until(lambda _: service.under_way == 0)
