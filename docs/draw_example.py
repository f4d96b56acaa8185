"""Draws the example of README: attention of the bundled model while it translates a word by its context.

python docs/draw_example.py
"""

from pathlib import Path
from xml.etree import ElementTree

import torch

from modeling_gtransformer import Translator
from modeling_gtransformer.evaluation.attention_recording import record_attention
from modeling_gtransformer.runtime.translator import SMALL_MODEL


DOCUMENT = ["The cat sleeps.", "It is old."]  # held out from the bundled model

WIDTH, HEIGHT = 400, 320  # the width of a phone
STYLE = """
  svg { --card: #ffffff; --text: #1f2328; --soft: #59636e;
        --one: #b9d3ff; --two: #ffd3a3; --mark: #c2255c; }
  @media (prefers-color-scheme: dark) {
    svg { --card: #1b1e23; --text: #e6e9ee; --soft: #a9b1bb;
          --one: #2b5597; --two: #85541d; --mark: #ff8fb3; } }
  .card { fill: var(--card); } .tag1 { fill: var(--one); } .tag2 { fill: var(--two); }
  .forced { stroke: var(--text); stroke-width: 1.6; }
  .group { stroke: var(--soft); fill: none; opacity: 0.7; } .global { stroke: var(--mark); fill: none; opacity: 0.7; }
  text { fill: var(--text); font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
  .soft { fill: var(--soft); } .small { font-size: 11px; } .bold { font-weight: 600; }
  .middle { text-anchor: middle; } .end { text-anchor: end; } .marked { fill: var(--mark); font-weight: 600; }
"""


class Drawing:
    """An SVG with a background, in light or dark colours as the reader's system prefers."""

    def __init__(self, title: str):
        size = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "width": f"{WIDTH}", "height": f"{HEIGHT}"}
        self.root = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "role": "img"})
        self.add("title", title)
        self.add("style", STYLE)
        self.add("rect", style="card", width=WIDTH, height=HEIGHT, rx=8)

    def add(
        self, kind: str, text: str | None = None, style: str | None = None, **places: float
    ) -> ElementTree.Element:
        """Adds an element with a class of the style."""
        attributes = {name: f"{place:g}" for name, place in places.items()}
        element = ElementTree.SubElement(self.root, kind, attributes | ({"class": style} if style else {}))
        element.text, element.tail = text, "\n"
        return element

    def links(
        self, x: float, y: float, middles: list[float | None], to: float, weights: list[float], style: str
    ) -> None:
        """Draws curves from a word to other words, as thick as the weights of its attention."""
        for middle, weight in zip(middles, weights, strict=True):
            if middle is not None and weight >= 0.05:
                between = (y + to) / 2
                curve = f"M{x:g},{y:g} C{x:g},{between:g} {middle:g},{between:g} {middle:g},{to:g}"
                self.add("path", style=style).attrib |= {"d": curve, "stroke-width": f"{1 + 16 * weight:.0f}"}

    def sentence(self, x: float, y: float, tokens: list[str], style: str) -> list[float | None]:
        """Draws the subwords of a sentence, and returns the middle of each; `None` for `<s>` and `</s>`."""
        middles: list[float | None] = []
        for token in tokens:
            if token in ("<s>", "</s>"):
                middles.append(None)
                continue
            word = token.removeprefix("▁")
            x += 4 if token.startswith("▁") and middles[1:] else 0
            width = 8 * len(word) + 4
            middles.append(x + width / 2)
            self.add("rect", style=style, x=x, y=y, width=width, height=26, rx=4)
            self.add("text", word, "middle small" if len(word) > 5 else "middle", x=x + width / 2, y=y + 18)
            x += width + 1
        return middles


def draw_example() -> str:
    """Draws attention of the last layer of the bundled model at the first word of the second sentence."""
    translate = Translator(str(SMALL_MODEL), device="cpu").pipeline
    inputs = translate.processor(DOCUMENT, return_tensors="pt")
    with torch.inference_mode():
        target = translate.model.generate(**inputs)[:, :-1]
        sublayers = record_attention(translate.model.eval(), **inputs, decoder_input_ids=target)
    name = translate.processor.tokenizer.convert_ids_to_tokens
    source_1, source_2 = split_at_bos(name(inputs["input_ids"][0].tolist()))
    target_1, target_2 = split_at_bos(name(target[0].tolist()))
    weights = {sublayer.stack: sublayer.weights for sublayer in sublayers if "global" in sublayer.weights}
    to_target = weights["decoder"]["global"][0, len(target_1)].tolist()[: len(target_1)]
    to_source = weights["cross"]["group"][0, len(target_1)].tolist()[len(source_1) :]

    drawing = Drawing("The decoder writes Sie for it: global attention finds the noun Katze in the sentence before")
    drawing.add("text", "Translation so far", "bold", x=14, y=24)
    written = drawing.sentence(14, 34, target_1, "tag1")
    drawing.add("text", "Next word", "bold", x=14, y=153)
    [word] = drawing.sentence(180, 135, target_2[1:2], "tag2 forced")
    drawing.add("text", "Source", "bold", x=14, y=308)
    own = drawing.sentence(14, 228, source_2, "tag2")
    drawing.sentence(14, 260, source_1, "tag1")
    drawing.links(word, 135, written, 60, to_target, "global")
    drawing.links(word, 161, own, 228, to_source, "group")
    for y, kind, scope, style in (
        (92, "global attention", "all sentences", "marked"),
        (188, "group attention", "its own sentence", "bold"),
    ):
        drawing.add("text", kind, f"end {style}", x=386, y=y)
        drawing.add("text", scope, "end small", x=386, y=y + 16)
    for y, tag in ((52, 1), (153, 2), (246, 2), (278, 1)):
        drawing.add("text", f"tag {tag}", "end soft", x=386, y=y)
    return ElementTree.tostring(drawing.root, encoding="unicode") + "\n"


def split_at_bos(tokens: list[str]) -> list[list[str]]:
    second = tokens.index("<s>", 1)
    return [tokens[:second], tokens[second:]]


if __name__ == "__main__":
    (Path(__file__).with_name("images") / "example.svg").write_text(draw_example(), encoding="utf-8")
