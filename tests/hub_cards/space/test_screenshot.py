"""The page in a browser: by keyboard, dark, narrow, and with errors in words."""

import shutil

import pytest


pytest.importorskip("gradio")

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


def test_in_a_browser(space, checkpoint, tmp_path):
    pytest.importorskip("selenium", reason="the driver package selenium is not installed")
    screenshot = space("screenshot")
    for programs in (screenshot.BROWSERS, ("chromedriver",)):
        if not any(map(shutil.which, programs)):
            pytest.skip(f"{programs[0]} is not installed")
    with screenshot.running_app(checkpoint) as address, screenshot.chromium(1100) as browser:

        def find(selector):
            return browser.find_elements("css selector", selector)

        def shadows():
            return [(source.value_of_css_property("box-shadow") != "none") for source in find(".pair p")]

        screenshot.translate_text(browser, address, TEXT)
        assert [source.text for source in find(".pair .source")] == TEXT.split("\n")
        assert len(find(".pair .target .confidence")) == 3 and len(find(".bars")) == 3
        assert not find(".pair b")
        warning = "it is translated in"
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
        words = "The document cannot be read: not a Word document"
        wait.until(lambda _: words in browser.find_element("tag name", "body").text)
        assert "Traceback" not in browser.page_source

        screenshot.translate_text(browser, address, TEXT, dark=True)
        assert find("body.dark")
        assert min(browser.execute_script(CONTRASTS)) >= 4.5

        screenshot.resize(browser, 360)
        source, target = find(".pair p")[:2]
        wait.until(lambda _: target.location["y"] > source.location["y"])
        widths = "return [document.documentElement, ...document.querySelectorAll('.pair p')].map(e => e.scrollWidth)"
        assert max(browser.execute_script(widths)) <= 360
