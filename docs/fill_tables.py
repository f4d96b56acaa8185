"""Fills the tables of the documents with the figures of the results files.

    python -m docs.fill_tables

A table stands between `<!-- table NAME -->` and `<!-- end of table -->`. Below it stands what a reader needs to judge
it: command, hardware, versions and commit, as the file has them; for several files, those of one of them, or nothing
where each has a table elsewhere.
"""

import re

from modeling_gtransformer.training.study_results import markdown
from modeling_gtransformer.training.study_results import table as study_table

from . import benchmark_tables, evaluation_tables
from .results_files import ROOT, Record, benchmark, study


DOCUMENTS = (
    *(ROOT / name for name in ("README.md", "benchmarks/README.md", "train/README.md", "train/RESULTS.md")),
    *sorted((ROOT / "train" / "results").glob("*.md")),
)
TABLE = re.compile(r"(<!-- table (\S+) -->\n).*?(?=<!-- end of table -->)", re.DOTALL)
OF_SEVERAL = {**benchmark_tables.OF_SEVERAL, **evaluation_tables.OF_SEVERAL}


def filled(text: str) -> str:
    """The text of a document, with its tables as the results files have them."""
    return TABLE.sub(lambda match: match[1] + make_table(match[2]), text)


def make_table(name: str) -> str:
    """
    The table of this name, with its origin.

    Raises:
        ValueError: no table has this name.
    """
    if name.startswith("study:"):
        record = study(name.removeprefix("study:"))
        text = study_table(record)
    elif name in OF_SEVERAL:
        table, record = OF_SEVERAL[name]()
        notes = [f"{origin(record)} (the other files likewise)"] if record else []
        return "\n\n".join([markdown(table), *notes]) + "\n"
    elif name in evaluation_tables.EVALUATIONS:
        record = study(name)
        text = markdown(evaluation_tables.EVALUATIONS[name](record))
    elif name in benchmark_tables.BENCHMARKS:
        record = benchmark(name)
        text = markdown(benchmark_tables.BENCHMARKS[name](record["results"]))
    else:
        known = [*benchmark_tables.BENCHMARKS, *evaluation_tables.EVALUATIONS, *OF_SEVERAL, "study:NAME"]
        raise ValueError(f"There is no table {name!r}; known are {', '.join(known)}.")
    return f"{text}\n\n{origin(record)}\n"


def origin(record: Record) -> str:
    versions = record["versions"]
    made_with = f"torch {versions['torch']}, Transformers {versions['transformers']}, commit {record['commit']}"
    return f"`{record['command']}`: {record['hardware']}, {made_with}"


def main() -> None:
    for path in DOCUMENTS:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
