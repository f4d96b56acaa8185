"""Tables of what `train/` has scored."""

import statistics
from collections.abc import Callable
from pathlib import Path

from .results_files import Record, Table, study


INVENTED, CHAT = "invented language", "BConTrasT"
# Every study: what it is of, its page in `train/results`, and its data.
STUDIES = {
    "invented_input_length": ("length of the input (figure 2a)", "input-length.md#in-an-invented-language", INVENTED),
    "chat_input_length": ("length of the input (figure 2a)", "input-length.md#on-little-real-text-figure-2a", CHAT),
    "chat_input_length_third": ("a third seed of that", "input-length.md#on-little-real-text-figure-2a", CHAT),
    "chat": ("base systems (Table 2)", "table-2.md", CHAT),
    "chat_ablations": ("context (Table 3)", "tables-3-5-6.md#context-of-source-and-target-table-3", CHAT),
    "chat_attention": (
        "locality and attention (Tables 5 and 6)",
        "tables-3-5-6.md#locality-group-and-global-attention-tables-5-and-6",
        CHAT,
    ),
    "start_of_context": (
        "how context starts",
        "context.md#how-context-starts-on-a-translator-of-sentences",
        INVENTED,
    ),
    "chat_sentences": ("where that starts from", "context.md#on-real-dialogues", CHAT),
    "chat_positions": ("positions in document or sentence", "context.md#on-real-dialogues", CHAT),
    "chat_address": ("forms of address", "address.md", "XDailyDialog"),
}


def studies() -> tuple[Table, None]:
    """A row per study."""
    rows = [["study", "subject", "data", "systems", "seeds", "minutes a training"]]
    for name, (label, page, data) in STUDIES.items():
        trained = study(name)["rows"]
        minutes = [training["minutes"] for row in trained for training in row.get("trainings", [])]
        seeds = sorted({len(row["seeds"]) for row in trained})
        cells = [
            str(len(trained)),
            " to ".join(map(str, seeds)),
            f"{statistics.median(minutes):.1f}" if minutes else "–",
        ]
        rows.append([f"[`{name}`](results/{page})", label, data, *cells])
    return rows, None


def lost_sentences() -> tuple[Table, Record]:
    """A row per way to translate, with means and spreads of three seeds."""
    labels = {
        "reference": "people (the error of the counter)",
        "plain": "a Transformer, trained on sentences",
        "ours": "G-Transformer",
    }
    records = [study(f"lost_sentences/{seed}") for seed in (1, 2, 3)]
    rows = [["the paragraphs as translated by", "sentences in", "out", "missing"]]
    for kind, label in labels.items():
        counts = [row for record in records for name, row in record["counts"].items() if name.startswith(kind)]
        counts = counts[:1] if kind == "reference" else counts
        out = mean_and_spread([row["out"] for row in counts], "{:.0f}")
        missing = mean_and_spread([100 * row["missing"] / row["in"] for row in counts], "{:.1f}")
        rows.append([label, str(counts[0]["in"]), out, f"{missing} %"])
    return rows, records[0]


def unseen() -> tuple[Table, Record]:
    """A row per seed: all sentences, and those that training has not seen, against the system without context."""
    records = [study(f"unseen/{seed}") for seed in (1, 2, 3)]
    first = records[0]["scores"]
    names = {"s-BLEU": "all", "s-BLEU/unseen": "unseen"}
    head = [f"s-BLEU of {label} ({first[name]['units']:,})" for name, label in names.items()]
    rows = [["seed", *(cell for each in head for cell in (each, "against no context"))]]
    for seed, record in enumerate(records, 1):
        scores = [record["scores"][name] for name in names]
        cells = (
            (f"{row['score']:.2f}", f"{row['difference']:+.2f} ({p_value_in_words(row['p_value'])})") for row in scores
        )
        rows.append([str(seed), *(cell for pair in cells for cell in pair)])
    return rows, records[0]


def aligned_documents() -> tuple[Table, Record]:
    """A row per length of the input: d-BLEU of a Transformer on documents, decoded in two ways."""
    records = {tokens: study(f"aligned_documents/{tokens}") for tokens in (64, 128, 256, 512)}
    rows = [["tokens", "decoded freely", "one sentence for each", "difference", "s-BLEU of the aligned sentences"]]
    for tokens, record in records.items():
        row = record["scores"]["d-BLEU/document"]
        low, high = row["interval"]
        difference = f"{row['difference']:+.2f} [{low:+.2f}, {high:+.2f}]"
        d_bleu = [f"{row['score'] - row['difference']:.2f}", f"{row['score']:.2f}"]
        rows.append([str(tokens), *d_bleu, difference, f"{record['scores']['s-BLEU']['score']:.2f}"])
    return rows, records[512]


def small_model() -> tuple[Table, Record]:
    """A row per stage of its training."""
    stages = {
        "first_stage": "`dialogues_sentences`: single sentences of all texts",
        "second_stage": "`dialogues`: the documents of BConTrasT",
    }
    names = {"s-BLEU": "s-BLEU", "s-BLEU/unseen": "of sentences that training has not seen"}
    names["d-BLEU/document"] = "d-BLEU"
    records = {stage: study(f"small_model/{stage}") for stage in stages}
    rows = [["after the stage", *names.values()]]
    for stage, label in stages.items():
        rows.append([label, *(f"{records[stage]['scores'][name]['score']:.2f}" for name in names)])
    return rows, records["second_stage"]


def context(record: Record) -> Table:
    """Gains in bits per token with their intervals, a row per other context, a column per class of words."""

    def cell(row: Record) -> str:
        return f"{row['gain']:.3f} [{row['interval'][0]:.3f}, {row['interval'][1]:.3f}]"

    return gains([record], lambda rows: cell(rows[0]))


def context_everyday() -> tuple[Table, Record]:
    """The same of three seeds, with mean and spread."""
    records = [study(f"context_everyday/{seed}") for seed in (1, 2, 3)]
    table = gains(records, lambda rows: mean_and_spread([row["gain"] for row in rows], "{:.3f}"))
    return table, records[-1]


def gains(records: list[Record], cell: Callable[[list[Record]], str]) -> Table:
    """A row per other context, a column per class of words; a cell is made of what every record has of it."""
    labels = {
        "shuffled": "the same sentences in another order",
        "other": "sentences of other documents",
        "none": "no context",
    }
    words = records[0]["gains"]["none"]
    rows = [["instead of the document", *(f"{name} ({words[name]['tokens']:,} tokens)" for name in words)]]
    for other, label in labels.items():
        rows.append([label, *(cell([record["gains"][other][name] for record in records]) for name in words)])
    return rows


def address(record: Record) -> Table:
    """Sentences with each form of address, and what they agree with; means and spreads of the seeds of a system."""
    systems: dict[str, list[Record]] = {}
    for name, row in record["scores"].items():
        systems.setdefault(name if name == "reference" else Path(name).parts[-3], []).append(row)
    rows = [["", "sentences with *Sie*", "sentences with *du*", "documents that mix them", "as in the reference"]]
    for system, seeds in systems.items():
        counts = (mean_and_spread([row[form] for row in seeds], "{:.0f}") for form in ("formal", "informal"))
        mixed, same = (
            f"{mean_and_spread([100 * row[kind]['share'] for row in seeds], '{:.1f}')} %"
            for kind in ("mixed", "as_reference")
        )
        rows.append([system, *counts, mixed, "" if system == "reference" else same])
    if "differences" in record:
        cells = (difference_in_points(record["differences"][kind]) for kind in ("mixed", "as_reference"))
        rows.append(["the first against the second", "", "", *cells])
    return rows


def difference_in_points(row: Record) -> str:
    low, high = (100 * value for value in row["interval"])
    return f"{100 * row['difference']:+.1f} points [{low:+.1f}, {high:+.1f}], {p_value_in_words(row['p_value'])}"


def p_value_in_words(value: float) -> str:
    return f"p = {value:.3f}" if value >= 0.001 else "p < 0.001"  # 2,000 repetitions cannot show much less


def contrapro() -> tuple[Table, Record]:
    """A row per system, a column per pronoun: how often the right one is preferred."""
    names = {
        "context": "`finetuned`, with the sentence before",
        "alone": "`finetuned`, the sentence alone",
        "no_context": "`finetuned_no_source_context`",
    }
    records = {name: study(f"contrapro/{name}-1") for name in names}
    groups = ["es", "sie", "er", "all"]
    items = records["context"]["accuracies"]
    rows = [["", *(f"{group} ({items[group]['items']:,} items)" for group in groups)]]
    for name, record in records.items():
        rows.append([names[name], *(f"{record['accuracies'][group]['accuracy']:.1f} %" for group in groups)])
    return rows, records["context"]


def mean_and_spread(values: list[float], form: str) -> str:
    """Mean and standard deviation of several seeds, or the value of a single one."""
    spread = f" ± {form.format(statistics.stdev(values))}" if len(values) > 1 else ""
    return form.format(statistics.mean(values)) + spread


def carried_sentences() -> tuple[Table, Record]:
    """A row per score, a column per number of carried sentences."""
    records = {number: study(f"carried_sentences/{number}") for number in ("0", "1", "2", "4", "whole")}
    rows = [["`--segment_sentences 2 --carried_sentences`", *records]]
    rows[0][-1] = "whole documents"
    for score in ("s-BLEU", "d-BLEU/document"):
        rows.append([score, *(f"{record['scores'][score]['score']:.2f}" for record in records.values())])
    return rows, records["4"]


def carried_dialogues() -> tuple[Table, Record]:
    """A row per length of the segments, a column per number of carried sentences."""
    records = {tokens: [study(f"carried_dialogues/{tokens}-{number}") for number in range(4)] for tokens in (128, 64)}
    rows = [["`--carried_sentences`", *map(str, range(len(records[128])))]]
    for tokens, scored in records.items():
        scores = (f"{record['scores']['s-BLEU']['score']:.2f}" for record in scored)
        rows.append([f"s-BLEU, `--segment_tokens {tokens}`", *scores])
    return rows, records[128][1]


def target_ratios(record: Record) -> Table:
    """Segments with a reference that is too long, a row per way to cut, a column per file of test documents."""
    files = [name.partition(".")[0].removeprefix("maruf_") for name in record["rows"][0]["files"]]
    rows = [["segments are cut by", "ratio", *files]]
    for row in record["rows"]:
        cells = (f"{each['too_long']} of {each['segments']}" for each in row["files"].values())
        rows.append([row["name"], f"{row['ratio']:.3f}" if row["ratio"] else "", *cells])
    return rows


def demo() -> tuple[Table, None]:
    systems = study("demo")["results"]
    rows = [[name, *(f"{score:.2f}" for score in scores.values())] for name, scores in systems.items()]
    return [["", *next(iter(systems.values()))], *rows], None


EVALUATIONS: dict[str, Callable[[Record], Table]] = {
    "target_ratios": target_ratios,
    "context_dialogues": context,
    "context_demo": context,
    "address": address,
    "address_everyday": address,
}

# Tables of several files, with one of them where it tells how they were made.
OF_SEVERAL: dict[str, Callable[[], tuple[Table, Record | None]]] = {
    "demo": demo,
    "studies": studies,
    "carried_sentences": carried_sentences,
    "carried_dialogues": carried_dialogues,
    "context_everyday": context_everyday,
    "contrapro": contrapro,
    "lost_sentences": lost_sentences,
    "unseen": unseen,
    "small_model": small_model,
    "aligned_documents": aligned_documents,
}
