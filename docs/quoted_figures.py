"""Sentences of the documents that quote figures outside of the tables, as the results files give them."""

from statistics import mean

from .evaluation_tables import mean_and_spread, p_value_in_words
from .results_files import Record, study


def quotes() -> list[tuple[str, str]]:
    """Pairs of a document and a text that it contains, but for its line breaks."""
    return [
        *_invented_language(),
        *_documents_and_sentences(),
        *_input_length(),
        *_context(),
        *_lost_sentences(),
    ]


def _row(record: Record, system: str, value: int | None = None) -> Record:
    return next(row for row in record["rows"] if (row["system"], row["value"]) == (system, value))


def _score(record: Record, system: str, name: str) -> float:
    return _row(record, system)["scores"]["test"][name]["mean"]


def _invented_language() -> list[tuple[str, str]]:
    record = study("invented_input_length")
    ours = [step for row in record["rows"] if row["system"] == "G-Transformer" for step in row["updates"]]
    shortest, longest = (_row(record, "Transformer", value)["updates"] for value in (80, 640))
    reached = min(step for step in longest if step is not None)
    range_of_ours = f"{min(ours)} to {max(ours)}"
    return [
        ("README.md", f"| {range_of_ours} | {reached:,} and more | |"),
        ("README.md", f"grow from {round(mean(shortest), -1):.0f} at 80 tokens to {reached:,} and more at 640"),
        ("README.md", f"{['none', 'one', 'two', 'three'][longest.count(None)]} of three Transformers at 640 tokens"),
        ("train/RESULTS.md", f"G-Transformer takes {range_of_ours} at every length"),
    ]


def _documents_and_sentences() -> list[tuple[str, str]]:
    record, attention = study("chat"), study("chat_attention")
    behind = _score(record, "sentences", "s-BLEU") - _score(record, "randinit", "s-BLEU")
    d_bleu = {name: _score(record, name, "d-BLEU/document") for name in ("documents", "randinit")}
    without = _score(attention, "no_language_locality", "d-BLEU/document")
    with_locality = _score(attention, "no_word_dropout", "d-BLEU/document")
    return [
        ("README.md", f"a G-Transformer from random weights stays {behind:.0f} s-BLEU behind"),
        ("train/RESULTS.md", f"G-Transformer stays {behind:.0f} s-BLEU behind a Transformer on sentences"),
        ("train/RESULTS.md", f"is {d_bleu['randinit'] - d_bleu['documents']:.0f} d-BLEU better than a Transformer on"),
        ("train/RESULTS.md", f"and that of cross-attention {without - d_bleu['documents']:.0f}"),
        ("train/RESULTS.md", f"locality of self-attention is worth {with_locality - without:.0f} of them"),
    ]


def _input_length() -> list[tuple[str, str]]:
    record, third = study("chat_input_length"), study("chat_input_length_third")
    d_bleu = {
        (row["system"], row["value"]): row["scores"]["test"]["d-BLEU/document"]["mean"] for row in record["rows"]
    }
    plain, ours = (d_bleu[system, 64] - d_bleu[system, 512] for system in ("Transformer", "G-Transformer"))
    by_seed = [
        theirs - ours
        for each in (record, third)
        for theirs, ours in zip(*(_seeds(each, system) for system in ("Transformer", "G-Transformer")), strict=True)
    ]
    *ahead, behind = sorted(by_seed, reverse=True)
    return [
        ("train/RESULTS.md", f"the Transformer loses {plain:.0f} d-BLEU and G-Transformer {ours:.0f}"),
        ("train/RESULTS.md", f"the Transformer is {ahead[0]:.0f} and {ahead[1]:.0f} d-BLEU better with two seeds"),
        ("train/RESULTS.md", f"{-behind:.1f} worse with the third"),
    ]


def _seeds(record: Record, system: str) -> list[float]:
    return _row(record, system, 64)["scores"]["test"]["d-BLEU/document"]["seeds"]


def _context() -> list[tuple[str, str]]:
    record = study("address_everyday")
    mixed: dict[str, list[float]] = {"/finetuned/": [], "/finetuned_no_source_context/": [], "reference": []}
    for name, row in record["scores"].items():
        next(values for part, values in mixed.items() if part in name).append(100 * row["mixed"]["share"])
    with_context, without, references = (mean_and_spread(values, "{:.0f}") for values in mixed.values())
    p_value = p_value_in_words(record["differences"]["mixed"]["p_value"])
    pronouns = study("context_demo")["gains"]["none"]["pronouns"]["gain"]
    everyday = [study(f"context_everyday/{seed}")["gains"]["other"]["address"]["gain"] for seed in (1, 2, 3)]
    customers = study("context_dialogues")["gains"]["other"]["all"]["gain"]
    return [
        ("train/RESULTS.md", f"models with context mix *Sie* and *du* in {with_context} % of the dialogues"),
        ("train/RESULTS.md", f"those without in {without} % ({p_value} over the dialogues"),
        ("train/RESULTS.md", f"the references in {references} %"),
        ("train/RESULTS.md", f"a pronoun that an earlier sentence determines costs {pronouns:.1f} bits more"),
        ("train/RESULTS.md", f"costs {mean_and_spread(everyday, '{:.2f}')} bits less in its own document"),
        ("train/RESULTS.md", f"{customers:.3f} bits a token over the sentences of other dialogues"),
    ]


def _lost_sentences() -> list[tuple[str, str]]:
    counts = [study(f"lost_sentences/{seed}")["counts"] for seed in (1, 2, 3)]
    plain = [row for each in counts for name, row in each.items() if name.startswith("plain")]
    share = mean_and_spread([100 * row["missing"] / row["in"] for row in plain], "{:.0f}")
    return [("train/RESULTS.md", f"{share} % as counted automatically")]
