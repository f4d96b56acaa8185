from functools import partial

import pytest
from transformers import MBartForConditionalGeneration

from train import demo


QUICK = ["--max_steps", "2", "--save_strategy", "no", "--load_best_model_at_end", "false", "--report_to", "none"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The demo, at a size at which nothing is learnt: its folder, its scores and what it printed."""
    patch = pytest.MonkeyPatch()
    patch.setattr(demo, "DOCUMENTS", {"train": 8, "valid": 1, "test": 1})
    patch.setattr(demo, "pretrain_tiny_mbart", partial(demo.pretrain_tiny_mbart, steps=2))
    folder = tmp_path_factory.mktemp("demo")
    yield folder, demo.main(["--output", str(folder), *QUICK])
    patch.undo()


def test_scores_both_systems_on_everything(run):
    _, scores = run
    assert list(scores) == ["mBART, by sentence", "G-Transformer"]
    for row in scores.values():
        assert list(row) == ["s-BLEU", "d-BLEU", "pronouns"]
        assert all(0 <= value <= 100 for value in row.values())


def test_pretrained_checkpoint_is_a_plain_mbart(run):
    folder, _ = run
    _, report = MBartForConditionalGeneration.from_pretrained(folder / "mbart", output_loading_info=True)
    assert not any(report[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))


def test_same_with_a_model_and_documents_of_ones_own(run, capsys):
    folder, _ = run
    files = {part: str(folder / "corpus" / f"{part}.jsonl") for part in ("train", "valid")}
    languages = ["--src_lang", "[sou]", "--tgt_lang", "[tar]"]
    arguments = ["--model", str(folder / "mbart"), "--train", files["train"], "--valid", files["valid"]]
    scores = demo.main([*arguments, "--output", str(folder / "own"), *languages, *QUICK])
    assert all(list(row) == ["s-BLEU", "d-BLEU"] for row in scores.values())

    printed = capsys.readouterr().out
    first_document = demo.read_documents([files["valid"]], ["source"])[0]["source"]
    table = [line for line in printed.splitlines() if "  |  " in line]
    assert [line.split("  |  ")[0].strip() for line in table] == first_document


def test_own_model_needs_own_documents(capsys):
    with pytest.raises(SystemExit):
        demo.main(["--model", "some/mbart"])
    assert "--train" in capsys.readouterr().err
