"""A checkpoint on the Hub brings its own code, so that it loads where this package is not installed."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from huggingface_hub import CommitInfo, ModelCard


TAGS = ["gtransformer", "document-translation", "translation"]


# What belongs to a card, beside a checkpoint.
CARD_FILES = ("training.svg", ".eval_results")


@contextmanager
def with_code(*parts: Any) -> Iterator[None]:
    """
    While it lasts, `save_pretrained` of these models and processors writes, beside their files, the code of their
    classes, of the pipeline and of all that they need, and says in the configuration where to find them.
    """
    with ExitStack() as restore:
        for part in parts:
            _register(type(part), part.auto_class, restore)
            config = getattr(part, "config", None)
            if config is not None:
                _register(type(config), "AutoConfig", restore)
                restore.callback(_set_fields, config, dict(vars(config)))
                config.auto_map = {"AutoModel": "modeling_gtransformer.GTransformerModel"}
                pipeline = {"impl": _pipeline_source(), "pt": ["AutoModelForSeq2SeqLM"], "type": "text"}
                config.custom_pipelines = {"document-translation": pipeline}
        yield


def _register(cls: type, auto_class: str, restore: ExitStack) -> None:
    restore.callback(setattr, cls, "_auto_class", cls._auto_class)  # type: ignore[attr-defined]
    cls._auto_class = auto_class  # type: ignore[attr-defined]


def _set_fields(config: Any, fields: dict[str, Any]) -> None:
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
        Upload everything that loading needs, in one commit: the files of `save_pretrained`, the code, and the card of
        the folder from which this was loaded or, if that has none of a G-Transformer, a general one.

        Raises:
            ValueError: this is an adapter, and its base is a folder of this machine.
        """
        for part in self._parts():
            base = getattr(part, "adapter_base", None)
            if base and Path(base).exists():
                raise ValueError(
                    f"The adapter's base {base} is a folder of this machine, where nobody else would find it: publish "
                    "the base first, and train or load the adapter with its name on the Hub."
                )
        own = [tags] if isinstance(tags, str) else list(tags or [])
        with with_code(*self._parts()):
            return super().push_to_hub(repo_id, tags=[*TAGS, *own], **kwargs)  # type: ignore[misc]

    def _upload_modified_files(self, working_dir: str, *args: Any, **kwargs: Any) -> CommitInfo:
        source = Path(self._loaded_from() or "nowhere")
        card = ModelCard.load(source / "README.md") if (source / "README.md").is_file() else None
        if card is not None and TAGS[0] in (card.data.tags or []):
            given = ModelCard.load(Path(working_dir, "README.md")).data.tags or []
            for name in CARD_FILES:
                if (source / name).is_dir():
                    shutil.copytree(source / name, Path(working_dir, name), dirs_exist_ok=True)
                elif (source / name).exists():
                    shutil.copyfile(source / name, Path(working_dir, name))
            card.data.tags = list(dict.fromkeys([*card.data.tags, *given]))
            card.save(Path(working_dir, "README.md"))
        return super()._upload_modified_files(working_dir, *args, **kwargs)  # type: ignore[misc]

    def _parts(self) -> list[Any]:
        """What is saved."""
        return [self]

    def _loaded_from(self) -> str:
        """The folder or repository that this was loaded from; empty if it was not loaded."""
        return ""
