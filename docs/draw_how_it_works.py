"""Drawings of README and of the page "How it works". The package computes their tags, attention and template.

python docs/draw_how_it_works.py [FOLDER]
"""

import sys
from pathlib import Path
from xml.sax.saxutils import escape

import torch

from modeling_gtransformer import GroupTagLogitsProcessor, Translator
from modeling_gtransformer.evaluation.attention_recording import record_attention
from modeling_gtransformer.group_tags import group_tags, same_group, sentence_lengths
from modeling_gtransformer.runtime.translator import SMALL_MODEL
from modeling_gtransformer.sentence_template import SENTENCE_TEMPLATES


IMAGES = Path(__file__).with_name("images")
SOURCE = ["<s>", "The", "cat", "sleeps", ".", "</s>", "<s>", "It", "is", "old", ".", "</s>"]
TARGET = ["<s>", "Die", "Katze", "schläft", ".", "</s>", "<s>", "Sie", "ist", "alt", ".", "</s>"]
END = "de_DE"
VOCABULARY = list(dict.fromkeys(["<s>", "<pad>", "</s>", END, *SOURCE, *TARGET]))
BOS, EOS = VOCABULARY.index("<s>"), VOCABULARY.index("</s>")
BEFORE_SIE = TARGET.index("Sie") - 1  # the decoder chooses a word at the token before it
DIALOGUE = ["Yes. I'd like their number, please.", "it is (916) 441-7200."]  # held out from the bundled model

WIDTH = 400  # of every drawing: that of a phone
STYLE = """
  svg { --card: #ffffff; --text: #1f2328; --soft: #59636e; --off: #eef0f3;
        --one: #b9d3ff; --two: #ffd3a3; --none: #dde1e6; --mark: #c2255c; }
  @media (prefers-color-scheme: dark) {
    svg { --card: #1b1e23; --text: #e6e9ee; --soft: #a9b1bb; --off: #2a2e35;
          --one: #2b5597; --two: #85541d; --none: #3f4650; --mark: #ff8fb3; } }
  .card { fill: var(--card); } .tag0 { fill: var(--none); } .tag1 { fill: var(--one); } .tag2 { fill: var(--two); }
  .off { fill: var(--off); } .mark { stroke: var(--mark); fill: none; stroke-width: 1.6; }
  .forced { stroke: var(--text); stroke-width: 1.6; }
  .group { stroke: var(--soft); fill: none; opacity: 0.7; } .global { stroke: var(--mark); fill: none; opacity: 0.7; }
  text { fill: var(--text); font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
  .soft { fill: var(--soft); } .small { font-size: 11px; } .bold { font-weight: 600; }
  .middle { text-anchor: middle; } .end { text-anchor: end; } .marked { fill: var(--mark); font-weight: 600; }
"""


class Drawing:
    """An SVG on a card of its own, in the colours that the reader's system asks for."""

    def __init__(self, title: str):
        self.title = title
        self.parts: list[str] = []

    def text(self, x: float, y: float, words: str, style: str = "") -> None:
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{style}">{escape(words)}</text>')

    def box(self, x: float, y: float, width: float, height: float, style: str, radius: float = 4) -> None:
        size = f'width="{width:g}" height="{height:g}" rx="{radius:g}"'
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" {size} class="{style}"/>')

    def links(
        self, x: float, y: float, middles: list[float | None], to: float, weights: list[float], style: str
    ) -> None:
        """Draws curves from a word to other words, as thick as the weights of its attention."""
        for middle, weight in zip(middles, weights, strict=True):
            if middle is not None and weight >= 0.05:
                between = (y + to) / 2
                curve = f"M{x:g},{y:g} C{x:g},{between:g} {middle:g},{between:g} {middle:g},{to:g}"
                self.parts.append(f'<path d="{curve}" class="{style}" stroke-width="{1 + 16 * weight:.0f}"/>')

    def svg(self, height: float) -> str:
        size = f'viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" height="{height:g}"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{escape(self.title)}</title>",
            f"<style>{STYLE}</style>",
            f'<rect width="{WIDTH}" height="{height:g}" rx="8" class="card"/>',
            *self.parts,
            "</svg>\n",
        ]
        return "\n".join(lines)


def ids(tokens: list[str]) -> torch.Tensor:
    return torch.tensor([[VOCABULARY.index(token) for token in tokens]])


def tags_of(tokens: list[str]) -> torch.Tensor:
    return group_tags(ids(tokens), BOS, EOS)


def sentences_of(tokens: list[str]) -> list[list[tuple[str, int]]]:
    """Tokens with their tags, a row per sentence."""
    rows: list[list[tuple[str, int]]] = []
    for token, tag in zip(tokens, tags_of(tokens)[0].tolist(), strict=True):
        if token == "<s>":
            rows.append([])
        rows[-1].append((token, tag))
    return rows


def draw_tags() -> str:
    """Source and target with the tag of every token."""
    drawing = Drawing("Source and target document with the group tag of every token")
    y = 28
    for name, symbol, tokens in (("Source", "G_X", SOURCE), ("Target", "G_Y", [*TARGET, END])):
        drawing.text(14, y, f"{name}, and its group tags {symbol}", "bold")
        y += 12
        for row in sentences_of(tokens):
            for column, (token, tag) in enumerate(row):
                x = 14 + column * 53.5
                drawing.box(x, y, 50, 26, f"tag{tag}")
                drawing.text(x + 25, y + 18, token, "middle small" if len(token) > 6 else "middle")
                drawing.text(x + 25, y + 42, str(tag), "middle soft")
            y += 56
        y += 16
    return drawing.svg(y - 18)


def draw_attention() -> str:
    """What every token may attend to: group and global attention, in the encoder, the decoder and between them."""
    drawing = Drawing("Which token attends to which under group attention and under global attention")
    cell, left, top = 12, 70, 62
    stacks = [
        ("Encoder: source → source", SOURCE, SOURCE, False, SOURCE.index("It")),
        ("Decoder: target → target", TARGET, TARGET, True, BEFORE_SIE),
        ("Cross-attention: target → source", TARGET, SOURCE, False, BEFORE_SIE),
    ]
    drawing.text(left + 72, 22, "group attention", "middle bold")
    drawing.text(left + 236, 22, "global attention", "middle bold")
    for title, queries, keys, causal, marked in stacks:
        drawing.text(14, top - 14, title, "soft")
        query_tags, key_tags = tags_of(queries), tags_of(keys)
        everything = torch.ones(len(queries), len(keys), dtype=torch.bool)
        past = everything.tril() if causal else everything
        for x, allowed in ((left, same_group(query_tags, key_tags)[0, 0] & past), (left + 164, past)):
            for row, column in everything.nonzero().tolist():
                style = f"tag{key_tags[0, column]}" if allowed[row, column] else "off"
                drawing.box(x + column * cell, top + row * cell, cell - 1.5, cell - 1.5, style, 1.5)
            drawing.box(x - 1.5, top + marked * cell - 1.5, len(keys) * cell + 1.5, cell + 1.5, "mark", 2)
        for row, token in enumerate(queries):
            drawing.text(left - 6, top + row * cell + 9, token, f"end small {'marked' if row == marked else ''}")
        top += len(queries) * cell + 48
    return drawing.svg(top - 34)


def draw_template() -> str:
    """What may come at every place of the target, by the processor that keeps `generate` to it."""
    drawing = Drawing("What may come at every position of the target document")
    limits = torch.tensor([[int(1.2 * (length - 2) + 10) for length in sentence_lengths(tags_of(SOURCE))[0].tolist()]])
    role = {"bos": "<s>", "eos": "</s>", "pad": "<pad>", "tgt_lang": END}
    template = SENTENCE_TEMPLATES["paper"].in_ids(lambda name: VOCABULARY.index(role[name]))
    processor = GroupTagLogitsProcessor(limits, 1, 64, template)
    y = 28
    place = 0
    for row in sentences_of([*TARGET, END]):
        for column, (token, tag) in enumerate(row):
            prefix = ids([*TARGET, END][:place])
            if place:
                scores = processor(prefix, torch.zeros(1, len(VOCABULARY)))[0]
                possible = [VOCABULARY[index] for index in scores.isfinite().nonzero()[:, 0].tolist()]
            else:
                possible = ["<s>"]  # the decoder starts with it
            forced = len(possible) == 1
            assert token in possible
            x = 14 + column * 53.5
            drawing.box(x, y, 50, 26, f"tag{tag} {'forced' if forced else ''}")
            drawing.text(x + 25, y + 18, token, "middle small" if len(token) > 6 else "middle")
            choice = ["forced"] if forced else ["a word"] + ["or </s>"] * ("</s>" in possible)
            for line, words in enumerate(choice):
                drawing.text(x + 25, y + 42 + 14 * line, words, "middle small soft")
            place += 1
        y += 76
    return drawing.svg(y - 8)


def draw_example() -> str:
    """What the last layer of the bundled model attends to when it chooses the first word of the second sentence."""
    translate = Translator(str(SMALL_MODEL), device="cpu").pipeline
    inputs = translate.processor(DIALOGUE, return_tensors="pt")
    with torch.inference_mode():
        target = translate.model.generate(**inputs)[:, :-1]
        sublayers = record_attention(translate.model.eval(), **inputs, decoder_input_ids=target)
    name = translate.processor.tokenizer.convert_ids_to_tokens
    source_1, source_2 = split_at_bos(name(inputs["input_ids"][0].tolist()))
    target_1, target_2 = split_at_bos(name(target[0].tolist()))
    weights = {sublayer.stack: sublayer.weights for sublayer in sublayers if "global" in sublayer.weights}
    to_target = weights["decoder"]["global"][0, len(target_1)].tolist()[: len(target_1)]
    to_source = weights["cross"]["group"][0, len(target_1)].tolist()[len(source_1) :]

    drawing = Drawing("The decoder writes Sie for it: global attention finds the noun Nummer in the sentence before")
    drawing.text(14, 24, "Translation so far", "bold")
    written = draw_sentence(drawing, 14, 34, target_1, "tag1")
    drawing.text(14, 153, "Next word", "bold")
    [word] = draw_sentence(drawing, 180, 135, target_2[1:2], "tag2 forced")
    drawing.text(14, 308, "Source", "bold")
    own = draw_sentence(drawing, 14, 228, source_2, "tag2")
    draw_sentence(drawing, 14, 260, source_1, "tag1")
    drawing.links(word, 135, written, 60, to_target, "global")
    drawing.links(word, 161, own, 228, to_source, "group")
    for y, kind, sees, style in (
        (92, "global attention", "sees all sentences", "marked"),
        (188, "group attention", "sees its own sentence", "bold"),
    ):
        drawing.text(386, y, kind, f"end {style}")
        drawing.text(386, y + 16, sees, "end small")
    for y, tag in ((52, 1), (153, 2), (246, 2), (278, 1)):
        drawing.text(386, y, f"tag {tag}", "end soft")
    return drawing.svg(320)


def split_at_bos(tokens: list[str]) -> list[list[str]]:
    second = tokens.index("<s>", 1)
    return [tokens[:second], tokens[second:]]


def draw_sentence(drawing: Drawing, x: float, y: float, tokens: list[str], style: str) -> list[float | None]:
    """Draws the subwords of a sentence in a row, and returns the middle of each; `<s>` and `</s>` have none."""
    middles: list[float | None] = []
    for token in tokens:
        if token in ("<s>", "</s>"):
            middles.append(None)
            continue
        word = token.removeprefix("▁")
        x += 4 if token.startswith("▁") and middles[1:] else 0
        width = 8 * len(word) + 4
        drawing.box(x, y, width, 26, style)
        drawing.text(x + width / 2, y + 18, word, "middle small" if len(word) > 5 else "middle")
        middles.append(x + width / 2)
        x += width + 1
    return middles


DRAWINGS = {"example": draw_example, "tags": draw_tags, "attention": draw_attention, "template": draw_template}


def main(argv: list[str]) -> None:
    folder = Path(argv[0]) if argv else IMAGES
    for name, draw in DRAWINGS.items():
        (folder / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
