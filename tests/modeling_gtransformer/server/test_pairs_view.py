"""Every sentence beside its translation, with a confidence that all can read."""

from server_fixtures import elements, text_of

from modeling_gtransformer.server.pairs_view import pairs_html


def test_pairs():
    texts = ["the cat", "<script>alert('&amp;\"')</script>", "it"]
    pairs = [
        {"source_text": text, "translation_text": text[::-1], "confidence": -number / 2}
        for number, text in enumerate(texts)
    ]
    pairs.append({"source_text": "12", "translation_text": "21", "confidence": None})
    texts.append("12")
    html = pairs_html(pairs, "en", "de")
    assert len(elements(html, "pair")) == 4
    sources, targets = (elements(html, side) for side in ("source", "target"))
    assert [text_of(source) for source in sources] == texts
    assert [target.text for target in targets] == [text[::-1] for text in texts]
    # The colour repeats what the text says.
    assert [text_of(target)[len(target.text) :] for target in targets] == [
        "confidence 100%",
        "confidence 61%",
        "confidence 37%",
        "",  # copied
    ]
    assert [target.get("style") for target in targets[:3]] == ["--doubt: 0.0%", "--doubt: 39.3%", "--doubt: 63.2%"]
    assert "-0.50 nats" in targets[1].get("title")
    assert {(e.get("lang"), e.get("tabindex")) for e in sources + targets} == {("en", "0"), ("de", "0")}
