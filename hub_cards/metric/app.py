"""The page of the Space: the card, as the widget of `evaluate` 0.4 needs Gradio 3."""

from pathlib import Path

import gradio


with gradio.Blocks() as page:
    gradio.Markdown(Path(__file__).with_name("README.md").read_text(encoding="utf-8").split("---\n", 2)[2])

if __name__ == "__main__":
    page.launch()
