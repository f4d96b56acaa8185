"""Makes the metric a repository of the `evaluate` library, with its card."""

import shutil
from dataclasses import MISSING, dataclass
from pathlib import Path

from huggingface_hub import RepoCard, SpaceCardData

from ..evaluation import metrics
from ..runtime.atomic_file import check_own_folder
from ..training.card_file import save_card
from ..translation_options import option
from .upload import UploadOptions, upload


METRIC = '''"""BLEU and chrF of sentence-aligned documents, as a metric of the `evaluate` library."""

import datasets
import evaluate

from .scores import score_documents


class DocumentTranslationMetric(evaluate.Metric):
    def _info(self):
        documents = datasets.Sequence(datasets.Value("string"))
        features = datasets.Features({"predictions": documents, "references": documents})
        return evaluate.MetricInfo(description=score_documents.__doc__, citation="", features=features)

    def _compute(self, predictions, references, **kwargs):
        return score_documents(predictions, references, **kwargs)
'''
APP = """import evaluate
from evaluate.utils import launch_gradio_widget

launch_gradio_widget(evaluate.load("{address}"))
"""


@dataclass(frozen=True, kw_only=True)
class MetricOptions(UploadOptions):
    """Options of [`publish_metric`]."""

    folder: Path = option(MISSING, "Folder to write; its name becomes the name of the metric.", argument=True)


def publish_metric(options: MetricOptions) -> None:
    """
    Writes the metric, its page and its card into a folder. `evaluate.load` takes the folder or, after the upload, the
    name of the repository.

    Raises:
        ValueError: the folder holds files of others, or the metric cannot have its name.
    """
    folder, name = options.folder, options.folder.resolve().name
    if name == "app":
        raise ValueError("The page of a metric is app.py: choose a name other than app for the folder.")
    names = ["app.py", "requirements.txt", "scores.py"]
    check_own_folder(folder, names, f"{name}.py")
    address = options.repository or name
    folder.mkdir(parents=True, exist_ok=True)
    # evaluate looks for a file with the name of its folder, and for the modules that it imports beside it.
    (folder / f"{name}.py").write_text(METRIC, encoding="utf-8")
    shutil.copyfile(metrics.__file__, folder / "scores.py")
    (folder / "app.py").write_text(APP.format(address=address), encoding="utf-8")
    (folder / "requirements.txt").write_text("evaluate\ndatasets\nnumpy\nsacrebleu>=2.4\n", encoding="utf-8")
    data = SpaceCardData(title=name, sdk="gradio", app_file="app.py", tags=["evaluate", "metric"])
    template = Path(__file__).with_suffix(".md")
    card = RepoCard.from_template(data, template_path=str(template), name=name, address=address)
    save_card(card, folder / "README.md", options.overwrite_card)
    upload(options, folder, ["README.md", *names, f"{name}.py"], "space", space_sdk="gradio")
