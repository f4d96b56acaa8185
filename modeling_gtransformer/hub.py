"""A checkpoint on the Hub brings its own code, so that it loads where this package is not installed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from huggingface_hub import CommitInfo


TAGS = ["gtransformer", "document-translation", "translation"]


@contextmanager
def with_code(saved: Any) -> Iterator[None]:
    """
    While it lasts, `save_pretrained` of this model or processor writes, beside its files, the code of its class, of
    the pipeline and of all that they need, and says in the configuration where to find them.
    """
    config = getattr(saved, "config", None)
    classes = {type(saved): saved.auto_class}
    if config is not None:
        classes[type(config)] = "AutoConfig"
        fields = dict(vars(config))
        config.auto_map = {"AutoModel": "modeling_gtransformer.GTransformerModel"}
        pipeline = {"impl": _pipeline_source(), "pt": ["AutoModelForSeq2SeqLM"], "type": "text"}
        config.custom_pipelines = {"document-translation": pipeline}
    before = {cls: cls._auto_class for cls in classes}
    for cls, auto_class in classes.items():
        cls._auto_class = auto_class
    try:
        yield
    finally:
        for cls, auto_class in before.items():
            cls._auto_class = auto_class
        if config is not None:
            vars(config).clear()
            vars(config).update(fields)


def _pipeline_source() -> str:
    # Transformers copies the modules that it finds in such lines, and those that these import.
    from .pipeline_gtransformer import DocumentTranslationPipeline

    return f"{DocumentTranslationPipeline.__module__.rpartition('.')[2]}.{DocumentTranslationPipeline.__name__}"


class PublishMixin:
    """`push_to_hub` with code, tags, and the model card that lies beside the checkpoint."""

    auto_class: str

    def push_to_hub(self, repo_id: str, *, tags: list[str] | str | None = None, **kwargs: Any) -> CommitInfo:
        """
        Upload everything that loading needs, in one commit: the files of `save_pretrained`, the code, and the card
        `README.md` of the folder from which this was loaded or, if there is none, a general one.
        """
        own = [tags] if isinstance(tags, str) else list(tags or [])
        with with_code(self):
            return super().push_to_hub(repo_id, tags=[*TAGS, *own], **kwargs)  # type: ignore[misc]

    def _upload_modified_files(self, working_dir: str, *args: Any, **kwargs: Any) -> CommitInfo:
        card = Path(self._loaded_from(), "README.md")
        if self._loaded_from() and card.is_file():
            shutil.copyfile(card, Path(working_dir) / "README.md")
        return super()._upload_modified_files(working_dir, *args, **kwargs)  # type: ignore[misc]

    def _loaded_from(self) -> str:
        """The folder or repository that this was loaded from, if any."""
        raise NotImplementedError
