"""Drawings of the page "How it works" whose tags, attention and template the functions of the package compute.

python docs/draw_how_it_works.py [FOLDER]
"""

import sys
from pathlib import Path
from xml.sax.saxutils import escape

import torch

from modeling_gtransformer import GroupTagLogitsProcessor
from modeling_gtransformer.group_tags import group_tags, same_group, sentence_lengths
from modeling_gtransformer.sentence_template import SENTENCE_TEMPLATES


IMAGES = Path(__file__).with_name("images")
SOURCE = ["<s>", "The", "cat", "sleeps", ".", "</s>", "<s>", "It", "is", "old", ".", "</s>"]
TARGET = ["<s>", "Die", "Katze", "schläft", ".", "</s>", "<s>", "Sie", "ist", "alt", ".", "</s>"]
END = "de_DE"
VOCABULARY = list(dict.fromkeys(["<s>", "<pad>", "</s>", END, *SOURCE, *TARGET]))
BOS, EOS = VOCABULARY.index("<s>"), VOCABULARY.index("</s>")
BEFORE_SIE = TARGET.index("Sie") - 1  # the decoder chooses a word at the token before it

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


DRAWINGS = {"tags": draw_tags, "attention": draw_attention, "template": draw_template}


def main(argv: list[str]) -> None:
    folder = Path(argv[0]) if argv else IMAGES
    for name, draw in DRAWINGS.items():
        (folder / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
