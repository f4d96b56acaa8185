"""A ContraPro folder of two items: one with a sentence before it and an annotation, one without."""

import json


CONTRAPRO = {
    "en.txt": ["a cat . <SEP> it sleeps .", "a cat . <SEP> it sleeps .", "<SEP> it barks .", "<SEP> it barks ."],
    "de.txt": [
        "eine Katze . <SEP> Sie schläft .",
        "eine Katze . <SEP> Er schläft .",
        "<SEP> er bellt .",
        "<SEP> es bellt .",
    ],
    "sentence_groups.txt": ["0", "2"],
}


def write_contrapro(folder):
    folder.mkdir()
    for name, lines in CONTRAPRO.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    annotation = [{"src segment": "It sleeps.", "ref segment": "Sie schläft.", "ante distance": 1}]
    (folder / "contrapro.json").write_text(json.dumps(annotation), encoding="utf-8")
    return folder
