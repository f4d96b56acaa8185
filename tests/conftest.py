"""Everything runs offline, on one thread, from fixed seeds, on models small enough for milliseconds."""

import os
import shutil
import tempfile


os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_DATASETS_CACHE"] = tempfile.mkdtemp()

import pytest
import torch
from adapters import adapters  # noqa: F401
from experiment_fixtures import experiment, make_trainer, trained_model  # noqa: F401
from hub_fixtures import hub, news_corpus, run, run_without_package  # noqa: F401
from hypothesis import settings
from server_fixtures import gate, listen, serve  # noqa: F401
from tiny import END_OF_DOCUMENT, PAD, TINY
from transformers import MBartTokenizer

from modeling_gtransformer import GTransformerConfig, GTransformerForConditionalGeneration, GTransformerProcessor


# No test is timed by the clock, and the same code passes or fails at every run.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
# `make fuzz`: the same properties, on many more examples, others at every run.
settings.register_profile("fuzz", deadline=None, derandomize=False, max_examples=20_000)


@pytest.fixture(scope="session", autouse=True)
def _clean_cache():
    yield
    shutil.rmtree(os.environ["HF_DATASETS_CACHE"])


@pytest.fixture(autouse=True)
def _reproducible():
    torch.manual_seed(0)
    torch.set_num_threads(1)


@pytest.fixture
def tiny_model():
    """Makes a model with random weights that are large enough to matter; `END_OF_DOCUMENT` ends its documents."""

    def make(**config):
        model = GTransformerForConditionalGeneration(GTransformerConfig(**(TINY | config))).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.15)
        model.generation_config.eos_token_id = END_OF_DOCUMENT
        return model

    return make


@pytest.fixture
def documents():
    """A batch of two documents, of three sentences and of one, padded on the right."""
    input_ids = torch.tensor([[0, 5, 6, 2, 0, 7, 2, 0, 9, 10, 11, 2], [0, 8, 6, 2, 1, 1, 1, 1, 1, 1, 1, 1]])
    return {"input_ids": input_ids, "attention_mask": input_ids.ne(PAD).long()}


@pytest.fixture(scope="session")
def mbart_tokenizer():
    """An mBART tokenizer of a few words and all lower-case letters; the real one differs by its vocabulary only."""
    words = ["▁the", "▁cat", "▁sleeps", "▁it", "▁is", "▁old", "▁die", "▁katze", "▁schläft", "▁sie", "▁ist", "▁alt"]
    letters = ["▁", *"abcdefghijklmnopqrstuvwxyzäöüß.,</>_DEX-"]
    specials = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
    vocab = specials + [(piece, -1.0 - len(piece) ** -1 - i / 99) for i, piece in enumerate(words + letters)]
    return MBartTokenizer(vocab=vocab, src_lang="en_XX", tgt_lang="de_DE", model_max_length=128)


@pytest.fixture
def processor(mbart_tokenizer):
    return GTransformerProcessor(mbart_tokenizer)


@pytest.fixture
def translation_model(processor, tiny_model):
    """Makes a tiny model for the texts of the processor."""

    def make(**config):
        model = tiny_model(vocab_size=len(processor.tokenizer), **config)
        processor.configure(model)
        return model

    return make


@pytest.fixture
def save_checkpoint(processor, translation_model, tmp_path):
    """Saves such a model with its processor, and gives the folder."""

    def save(**config):
        for part in (translation_model(**config), processor):
            part.save_pretrained(tmp_path / "model")
        return str(tmp_path / "model")

    return save


@pytest.fixture
def checkpoint(save_checkpoint):
    """The folder of a saved model."""
    return save_checkpoint()


@pytest.fixture(scope="session")
def sentence_level_checkpoint(tmp_path_factory):
    """Gives the folder of a tiny trained translator by the name of its family, made when it is first asked for."""
    from sentence_level_translators import FAMILIES

    families, folders = {family.name: family for family in FAMILIES}, {}

    def folder(name):
        if name not in folders:
            folders[name] = families[name].save(tmp_path_factory.mktemp("plain") / name)
        return folders[name]

    return folder


@pytest.fixture(scope="module")
def ray_cluster():
    """Ray, connected to a small cluster of its own, not to one that another process has started."""
    ray = pytest.importorskip("ray")
    ray.init(address="local", num_cpus=2, num_gpus=0, include_dashboard=False, object_store_memory=80 * 2**20)
    yield ray
    ray.shutdown()
