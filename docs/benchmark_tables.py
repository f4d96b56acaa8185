"""Tables of what `benchmarks/` has measured."""

import statistics
from collections.abc import Callable

from .results_files import Record, Table, benchmark


LABELS = {
    "transformer": "Transformer on single sentences",
    "mbart": "MBart",
    "gtransformer": "G-Transformer",
    "gtransformer-k0": "group attention only",
    "mbart-compiled": "MBart, compiled",
    "gtransformer-compiled": "G-Transformer, compiled",
    "mbart-32": "MBart on single sentences, 32 a batch",
    "mbart-64": "MBart on single sentences, 64 a batch",
    "gtransformer-source": "G-Transformer, context of the source alone",
    "gtransformer-int8": "G-Transformer, int8",
    "gtransformer-source-int8": "G-Transformer, context of the source alone, int8",
    "ctranslate2": "CTranslate2 on single sentences, float32",
    "ctranslate2-int8": "CTranslate2 on single sentences, int8",
    "gtransformer-bfloat16": "G-Transformer, bfloat16",
}
BEAMS = {"1 beams": "greedy"}


def training(results: Record) -> Table:
    head = ["tokens", "", "tokens/s", "times MBart", "GB", "of MBart's", "GFLOP per token", "share of the matrix rate"]
    return [head] + [
        [
            tokens,
            LABELS[system],
            f"{row['tokens_per_second']:.0f}",
            f"{row['speed_ratio']:.2f}",
            f"{row['peak_memory_gb']:.2f}",
            f"{row['memory_ratio']:.2f}",
            f"{row['gflop_per_token']:.3f}" if "gflop_per_token" in row else "",
            f"{row['share_of_matrix_rate']:.0%}" if "share_of_matrix_rate" in row else "",
        ]
        for tokens, systems in results.items()
        for system, row in systems.items()
    ]


def corpus_profile(results: Record) -> Table:
    """A row per number of beams and system, a column per kind of operation."""
    kinds = list(next(iter(next(iter(results.values())).values())))
    rows = [["seconds", "", *kinds]]
    for setting, systems in results.items():
        for name, seconds in systems.items():
            system, _, way = name.partition(", ")
            label = LABELS[system] + (f", {way}" if way else "")
            rows.append([BEAMS.get(setting, setting), label, *(f"{seconds[kind]:.1f}" for kind in kinds)])
    return rows


def dialogues(results: Record) -> Table:
    """A row per number of beams and way to translate."""
    rows = [["", "", "sentences/s", "times single sentences", "s-BLEU", "d-BLEU", "seconds to the first sentence"]]
    for setting, systems in results.items():
        if setting.endswith("beams"):
            for name, row in systems.items():
                scores = (f"{row[score]:.1f}" for score in ("s-BLEU", "d-BLEU/document"))
                first = f"{row['seconds_to_first_sentence']:.2f}" if "seconds_to_first_sentence" in row else ""
                speed = [f"{row['sentences_per_second']:.1f}", f"{row['speed_ratio']:.2f}"]
                rows.append([BEAMS.get(setting, setting), name, *speed, *scores, first])
    return rows


def serving(results: Record) -> Table:
    """Medians over the repeats."""
    rows = [["", "requests/s", "times direct", "median seconds", "99th percentile", "lost", "MB after each run"]]
    repeats = results["repeats"]
    for name in repeats[0]:
        runs = [repeat[name] for repeat in repeats]
        speed = statistics.median(run["requests_per_second"] for run in runs)
        ratio = statistics.median(
            repeat[name]["requests_per_second"] / repeat["direct"]["requests_per_second"] for repeat in repeats
        )
        seconds = [
            f"{statistics.median(run[figure] for run in runs):.2f}" if figure in runs[0] else ""
            for figure in ("median", "percentile_99")
        ]
        memory = ", ".join(f"{run['memory_mb']:.0f}" for run in runs if "memory_mb" in run)
        lost = str(sum(run["lost"] for run in runs)) if "lost" in runs[0] else ""
        rows.append([name, f"{speed:.2f}", f"{ratio:.2f}", *seconds, lost, memory])
    return rows


def startup(results: Record) -> Table:
    labels = {"peer": f"commit {results.get('peer')}", "first": "first start", "second": "second start"}
    rows = [["sentences", "", "seconds", "MB at the first batch", "MB at the peak"]]
    for sentences, starts in results.items():
        if sentences != "peer":
            for kind, row in starts.items():
                figures = (f"{row[figure]:.0f}" for figure in ("seconds", "memory_mb", "peak_mb"))
                rows.append([sentences, labels[kind], *figures])
    return rows


def training_profile(results: Record) -> Table:
    parts = list(results["mbart"]["seconds"])
    return [["", *parts, "kept"]] + [
        [
            LABELS[system],
            *(f"{row['seconds'][part]:.2f}" for part in parts),
            f"{row['kept_over_tokens_times_width']:.0f}",
        ]
        for system, row in results.items()
    ]


def by_beams(results: Record) -> Table:
    """A row per system, a column per number of beams: tokens per second, and times the peer."""
    settings = [name for name in results if name.endswith("beams")]
    columns = [BEAMS.get(setting, setting) for setting in settings]
    rows = [["tokens per second (times the peer)", *columns]]
    for system in results[settings[0]]:
        figures = [results[setting][system] for setting in settings]
        rows.append(
            [LABELS[system], *(f"{row['tokens_per_second']:.0f} ({row['speed_ratio']:.2f})" for row in figures)]
        )
    return rows


def generation(results: Record) -> Table:
    rows = [["", "", "tokens/s", "times the first", "share of the floor"]]
    for setting, systems in results.items():
        for system, row in systems.items():
            share = f"{row['share_of_floor']:.0%}" if "share_of_floor" in row else ""
            rows.append(
                [setting, LABELS[system], f"{row['tokens_per_second']:.1f}", f"{row['speed_ratio']:.2f}", share]
            )
    return rows


def ratios(results: Record) -> Table:
    """A row per length, a column per way, as multiples of the first."""
    ways = list(next(iter(results.values())))
    return [["tokens", *ways]] + [[tokens, *(f"{row[way]:.2f}" for way in ways)] for tokens, row in results.items()]


def long_document(results: Record) -> Table:
    rows = [["sentences", "source tokens", "seconds", "MB above the start"]]
    for sentences, row in results.items():
        memory = row["peak_mb"] - row["peak_mb_before"]
        rows.append([sentences, str(row["source_tokens"]), f"{row['seconds']:.1f}", f"{memory:.0f}"])
    return rows


def padding(results: Record) -> Table:
    return [["", "padding", "in random order"]] + [
        [name, f"{row['padding']:.1%}", f"{row['padding in random order']:.1%}"] for name, row in results.items()
    ]


def short_documents(results: Record) -> Table:
    rows = [["", "tokens/s", "times the Transformer", "GFLOP per token", "ratio of the operations"]]
    for system in ("transformer", "gtransformer"):
        row = results[system]
        figures = [f"{row['tokens_per_second']:.0f}", f"{row['speed_ratio']:.2f}", f"{row['gflop_per_token']:.3f}"]
        rows.append([LABELS[system], *figures, f"{row['ratio_of_operations']:.2f}"])
    return rows


def hostile_text(results: Record) -> Table:
    """The slowest kind of every format, and all of them together; kinds that failed in rows of their own."""
    rows = [["format", "kinds", "slowest kind", "its seconds", "seconds of all", "peak GB"]]
    for name, kinds in results.items():
        if name != "megabytes":
            failures = {kind: row["failure"] for kind, row in kinds.items() if "failure" in row}
            rows += [[name, "1", kind, failure, "", ""] for kind, failure in failures.items()]
            done = {kind: row for kind, row in kinds.items() if kind not in failures}
            steps = ("read", "placeholders", "rejoined twice")
            seconds = {kind: sum(row[step] for step in steps) for kind, row in done.items()}
            if seconds:
                slowest = max(seconds, key=lambda kind: seconds[kind])
                memory = max(row["peak GB so far"] for row in done.values())
                figures = [f"{seconds[slowest]:.0f}", f"{sum(seconds.values()):.0f}", f"{memory:.1f}"]
                rows.append([name, str(len(done)), slowest, *figures])
    return rows


def memory(results: Record) -> Table:
    """A row per model and precision, a column per size of a card; behind a slash with checkpointing."""
    cards = [*next(iter(results.values()))["max_tokens"]["one GPU"]]
    rows = [["model", "GPUs", *(f"{card} GB" for card in cards)]]
    for name, row in results.items():
        for gpus in row["fixed_bytes"]:
            plain, checkpointing = (row["max_tokens"][f"{gpus}{how}"] for how in ("", " with checkpointing"))
            cells = (f"{plain[card]:,} / {checkpointing[card]:,}" for card in cards)
            rows.append([name, gpus.removesuffix(" GPUs").removesuffix(" GPU"), *cells])
    return rows


def inline_markup(results: Record) -> Table:
    """A row per way; only by attention are words aligned, and only where the truth is made is anything translated."""
    seconds = results["seconds"]
    rows = [
        ["way", "tags", "at the right words", "seconds of alignment", *["seconds of translation"] * (len(seconds) - 1)]
    ]
    for way, share in results["share of tags at the right words"].items():
        alignment = f"{seconds['alignment']:.1f}" if way == "by attention" else ""
        translation = [f"{seconds['translation']:.1f}"] if "translation" in seconds else []
        rows.append([way, str(results["tags"]), f"{share:.1%}", alignment, *translation])
    return rows


def speed() -> tuple[Table, None]:
    """What README says of speed, from five files."""
    corpus, corpus_48 = benchmark("corpus")["results"], benchmark("corpus-48")["results"]
    document, step = benchmark("generation")["results"], benchmark("training-base")["results"]
    dialogues = benchmark("dialogues")["results"]
    greedy, beams = "1 beams", "5 beams"

    def times(system: str, peer: str, setting: str) -> str:
        row = corpus[setting]
        return f"{row[system]['tokens_per_second'] / row[peer]['tokens_per_second']:.2f}"

    def against_mbart(system: str, setting: str) -> str:
        return f"{corpus[setting][system]['speed_ratio']:.2f}"

    def of_single_sentences(setting: str) -> str:
        return f"{dialogues[setting]['documents']['speed_ratio']:.2f}"

    def side_by_side(setting: str) -> str:
        ways = ("sentences side by side", "token by token")
        fast, slow = (dialogues[setting][f"one document at a time, {way}"]["sentences_per_second"] for way in ways)
        return f"{fast / slow:.2f}"

    with_48 = f"{corpus_48[greedy]['gtransformer']['speed_ratio']:.2f} (48 documents at once), "
    source, one = "gtransformer-source", "gtransformer"
    table = [
        ["", "greedy", "beam 5"],
        [
            "A corpus with context on both sides, against MBart on single sentences",
            f"{with_48}{against_mbart(one, greedy)} (16)",
            f"{against_mbart(one, beams)} (16)",
        ],
        [
            "A corpus with context of the source alone, against the same",
            against_mbart(source, greedy),
            against_mbart(source, beams),
        ],
        [
            "– against CTranslate2 on single sentences, float32",
            times(source, "ctranslate2", greedy),
            times(source, "ctranslate2", beams),
        ],
        [
            "– both in int8",
            times(f"{source}-int8", "ctranslate2-int8", greedy),
            times(f"{source}-int8", "ctranslate2-int8", beams),
        ],
        [
            "One document of 512 tokens, against MBart on it as one sequence",
            *(f"{document[f'512 tokens, {setting}'][one]['speed_ratio']:.2f}" for setting in (greedy, beams)),
        ],
        [
            "Eight real dialogues at once, against their single sentences",
            *map(of_single_sentences, (greedy, beams)),
        ],
        [
            "Real dialogues one at a time, sentences side by side, against token by token",
            *map(side_by_side, (greedy, beams)),
        ],
        *(
            [f"A training step on {tokens} tokens, against MBart", f"{step[tokens][one]['speed_ratio']:.2f}", ""]
            for tokens in ("512", "2048")
        ),
    ]
    return table, None


BENCHMARKS: dict[str, Callable[[Record], Table]] = {
    "training-base": training,
    "training-base-encoder": training,
    "training-profile-512": training_profile,
    "corpus": by_beams,
    "corpus-48": by_beams,
    "generation": generation,
    "precision": generation,
    "memory": memory,
    "attention-cpu": ratios,
    "loss-base-0.0": ratios,
    "loss-base-0.1": ratios,
    "long_document": long_document,
    "padding": padding,
    "short_documents": short_documents,
    "corpus-profile": corpus_profile,
    "corpus-profile-beams": corpus_profile,
    "dialogues": dialogues,
    "serving": serving,
    "serving-memory": serving,
    "serving-memory-before": serving,
    "startup": startup,
    "startup-before": startup,
    "hostile_text": hostile_text,
    "inline_markup": inline_markup,
    "inline_markup-catalogs": inline_markup,
}

# Tables of several files.
OF_SEVERAL: dict[str, Callable[[], tuple[Table, None]]] = {"speed": speed}
