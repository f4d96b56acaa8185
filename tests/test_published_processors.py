"""Tokenizers of published Opus-MT checkpoints, with small random weights behind them, against Transformers' MarianMT.

The files are not part of this repository: the tests run where `PUBLISHED_PROCESSORS`, or a folder `shared/processors`
beside the checkout, holds them.
"""

import copy
import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from repository import ROOT
from tiny import ONLY_GROUP, SIZE
from transformers import MarianConfig, MarianMTModel, MarianTokenizer, pipeline
from transformers.utils import logging

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor


FOLDER = Path(os.environ.get("PUBLISHED_PROCESSORS", ROOT.parent / "shared" / "processors"))
TEXTS = {
    "opus-mt-en-mg": [
        "The lichen is fine.",
        "To be or not to be, that is the question.",
        "Children in Kenya often walk to school; the golden garden is hidden.",
    ],
    "opus-mt-tc-big-fr-en": [
        "Le lichen est bien.",
        "Les enfants viennent demain en France.",
        "Il est bien entendu que tout dépend de la fin.",
    ],
}
ODD = [
    "en",
    "de",
    ">>",
    "a\tb   c",
    "ﬁnal １２３ “quotes” … — dash",
    "émoji 😀",
    "x" * 60,
    "<<en>> Ⅷ ½ ™",
    "I am <b>bold</b>",
]
HOSTILE = ["</s> a dog", ">>por<< a dog", ">>xx<<", "a <pad> b", "<unk>", "<s>"]

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(),
    reason="needs tokenizers of published Opus-MT models: set PUBLISHED_PROCESSORS to their folder",
)


class Published:
    """A checkpoint with these files, some target languages added, and its plain model and tokenizer."""

    def __init__(self, name: str, targets: tuple[str, ...], folder: Path):
        self.texts, self.targets, self.folder = TEXTS[name], targets, folder
        shutil.copytree(FOLDER / name, folder, copy_function=shutil.copyfile)
        vocabulary = json.loads((folder / "vocab.json").read_text())
        for target in targets:
            vocabulary[f">>{target}<<"] = len(vocabulary)
        (folder / "vocab.json").write_text(json.dumps(vocabulary))
        if targets:
            self.update("tokenizer_config.json", target_lang="pt")
        sizes = {"num_hidden_layers": SIZE["encoder_layers"], "vocab_size": len(vocabulary)}
        self.update("config.json", **SIZE, **sizes, decoder_vocab_size=len(vocabulary), init_std=0.3)
        torch.manual_seed(0)
        model = MarianMTModel(MarianConfig.from_pretrained(folder))
        model.final_logits_bias.normal_()
        # As published: a pickle in half precision with the shared matrix once, and tables of positions. These are in
        # full precision, because the plain model would read rounded ones.
        tied = {"lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"}
        weights = {name: weight for name, weight in model.state_dict().items() if name not in tied}
        weights = {name: each if "embed_positions" in name else each.half() for name, each in weights.items()}
        torch.save(weights, folder / "pytorch_model.bin")
        self.tokenizer = MarianTokenizer.from_pretrained(folder)
        self.plain = MarianMTModel.from_pretrained(folder, dtype=torch.float32).eval()
        self.prefix = f">>{targets[0]}<< " if targets else ""

    def update(self, name: str, **fields) -> None:
        file = self.folder / name
        file.write_text(json.dumps(json.loads(file.read_text()) | fields))

    def processor(self) -> GTransformerProcessor:
        return GTransformerProcessor.from_pretrained(self.folder, tgt_lang=self.targets[0] if self.targets else None)


@pytest.fixture(
    scope="module", params=[(name, targets) for name in TEXTS for targets in ((), ("por", "pob"))], ids=str
)
def published(request, tmp_path_factory):
    name, targets = request.param
    return Published(name, targets, tmp_path_factory.mktemp("published") / name)


def test_text_has_the_ids_that_the_plain_model_reads(published):
    processor, tokenizer = published.processor(), published.tokenizer
    for text in [*published.texts, *ODD]:
        [source], [target] = processor.encode_sentences([text]), processor.encode_sentences([text], is_target=True)
        assert processor.build_source([source]) == tokenizer(published.prefix + text).input_ids
        assert processor.build_labels([target]) == tokenizer(text_target=text).input_ids
    structural = {*processor.structural_token_ids}
    assert structural.isdisjoint(token for ids in processor.encode_sentences(HOSTILE) for token in ids)


def test_only_what_is_no_word_is_suppressed(published):
    processor = published.processor()
    model = GTransformerForConditionalGeneration.from_pretrained(published.folder)
    suppressed = processor.generation_settings(model)["suppress_tokens"]
    expected = {"<unk>", *(f">>{target}<<" for target in published.targets)}
    assert {*published.tokenizer.convert_ids_to_tokens(suppressed)} == expected


def test_logits_are_those_of_the_plain_model(published):
    """Of every sentence of a document; in double precision, as random weights amplify rounding."""
    processor = published.processor()
    model, report = GTransformerForConditionalGeneration.from_pretrained(
        published.folder, dtype=torch.float64, output_loading_info=True, **ONLY_GROUP
    )
    assert not any(report.values()), report
    inputs = processor(published.texts, published.texts, return_tensors="pt")
    read = model.prepare_decoder_input_ids_from_labels(inputs["labels"])[0].tolist()
    starts = processor.target_template.starts(read)
    logits, plain = model.eval()(**inputs).logits[0], copy.deepcopy(published.plain).double()
    assert len(starts) >= len(published.texts)
    for start, text in zip(starts, published.texts, strict=False):
        alone = published.tokenizer(published.prefix + text, text_target=text, return_tensors="pt")
        expected = plain(**alone).logits[0]
        torch.testing.assert_close(logits[start : start + len(expected)], expected)


@pytest.mark.parametrize("num_beams", [1, 4])
def test_documents_are_translated_as_their_sentences_are(published, num_beams, caplog):
    logging.get_logger("transformers").addHandler(caplog.handler)
    language = {"tgt_lang": published.targets[0]} if published.targets else {}
    translate = pipeline("document-translation", model=str(published.folder), dtype=torch.float32, **language)
    assert "LOAD REPORT" not in caplog.text
    found = [pair["translation_text"] for pair in translate(published.texts, num_beams=num_beams)["sentences"]]
    banned = published.processor().generation_settings(translate.model)["suppress_tokens"]
    for text, translation in zip(published.texts, found, strict=True):
        inputs = published.tokenizer(published.prefix + text, return_tensors="pt")
        limit = int(1.2 * (inputs.input_ids.shape[1] - 1) + 10)
        settings = {"max_length": limit + 2, "forced_eos_token_id": published.tokenizer.eos_token_id}
        ids = published.plain.generate(**inputs, num_beams=num_beams, suppress_tokens=banned, **settings)
        assert published.tokenizer.decode(ids[0], skip_special_tokens=True) == translation


def test_languages_are_those_that_the_tokenizer_declares(published):
    """`pt`, the default of the files with several targets, is not one of them."""
    if not published.targets:
        assert published.processor().language_codes == []
        with pytest.raises(ValueError, match="not into 'xx'"):
            GTransformerProcessor.from_pretrained(published.folder, tgt_lang="xx")
        return
    processor = published.processor()
    assert processor.language_codes == ["pob", "por"]
    code = published.tokenizer.convert_tokens_to_ids(">>por<<")
    assert processor.build_source([[5], [6]]).count(code) == 2
    assert GTransformerProcessor.from_pretrained(published.folder, tgt_lang=">>por<<").build_source([[5]])[0] == code
    with pytest.raises(ValueError, match=r"has no tgt_lang, .* one of pob, por"):
        GTransformerProcessor.from_pretrained(published.folder)(published.texts)
    for language, near in {
        "pt": "Similar codes: p",
        "xx": "Its codes: pob, por",
        "en": "Its codes: pob, por",
    }.items():
        with pytest.raises(ValueError, match=f"has no language '{language}'.*{near}"):
            GTransformerProcessor.from_pretrained(published.folder, tgt_lang=language)
