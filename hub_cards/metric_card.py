"""Make the metric a repository of the `evaluate` library, with its card.

    python hub_cards/metric_card.py outputs/document_bleu [--repository user/document_bleu --push [--private]]

`evaluate.load` takes the folder or, after the upload, the name of the repository.
"""

import argparse
import shutil
import sys
from pathlib import Path

from huggingface_hub import RepoCard, SpaceCardData

from modeling_gtransformer.atomic_file import check_own_folder
from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.cli.hub_upload import parse_with_upload, upload
from modeling_gtransformer.evaluation import metrics
from modeling_gtransformer.training.card_file import save_card


TEMPLATE = Path(__file__).parent / "templates" / "metric.md"
APP = """import evaluate
from evaluate.utils import launch_gradio_widget

launch_gradio_widget(evaluate.load("{address}"))
"""


def main(argv: list[str]) -> None:
    args = parse_arguments(argv)
    name = args.folder.resolve().name
    if name == "app":
        raise ValueError(
            "A metric cannot be called app, because its page is app.py: choose another name for the folder."
        )
    check_own_folder(args.folder, ["app.py", "requirements.txt"], f"{name}.py")
    address = args.repository or name
    args.folder.mkdir(parents=True, exist_ok=True)
    # evaluate looks for a file with the name of its folder.
    shutil.copyfile(metrics.__file__, args.folder / f"{name}.py")
    (args.folder / "app.py").write_text(APP.format(address=address), encoding="utf-8")
    (args.folder / "requirements.txt").write_text("evaluate\ndatasets\nnumpy\nsacrebleu>=2.4\n", encoding="utf-8")
    data = SpaceCardData(title=name, sdk="gradio", app_file="app.py", tags=["evaluate", "metric"])
    card = RepoCard.from_template(data, template_path=str(TEMPLATE), name=name, address=address)
    save_card(card, args.folder / "README.md", args.overwrite_card)
    if args.push:
        upload(args, ["README.md", "app.py", "requirements.txt", f"{name}.py"], "space", space_sdk="gradio")


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Folder to write; its name becomes the name of the metric.")
    return parse_with_upload(parser, argv, "metric")


if __name__ == "__main__":
    sys.exit(run("metric_card.py", lambda: main(sys.argv[1:])))
