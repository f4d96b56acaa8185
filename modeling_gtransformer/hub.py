"""Checkpoints on the Hub: uploads with code, so that they load without this package, and adapters (peft) with the
configuration of their global attention."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from huggingface_hub import CommitInfo, ModelCard
from safetensors.torch import load_file
from transformers.dynamic_module_utils import custom_object_save
from transformers.utils import cached_file, logging

from .configuration_gtransformer import GTransformerConfig


# Arguments of `from_pretrained` that locate the files of a checkpoint.
HUB_ARGUMENTS = ("cache_dir", "force_download", "local_files_only", "revision", "subfolder", "token")

# The version of the package, and of the code that a checkpoint carries.
__version__ = "0.3.0"

logger = logging.get_logger(__name__)

TAGS = ["gtransformer", "document-translation", "translation"]

# Pipelines to upload with a model, by task. Their modules add them, because the model must not import them.
PIPELINES: dict[str, type] = {}


def warn_of_other_version() -> None:
    """Warns if this code belongs to a checkpoint and the installed package has another version."""
    if not __name__.startswith("transformers_modules."):
        return
    try:
        installed = metadata.version("gtransformer-hf")
    except metadata.PackageNotFoundError:
        return
    if installed != __version__:
        logger.warning(
            f"This checkpoint contains the code of gtransformer-hf {__version__}, but {installed} is installed: load "
            "it without trust_remote_code to use the installed version."
        )


warn_of_other_version()


@contextmanager
def with_code(*parts: Any) -> Iterator[None]:
    """
    In this context, `save_pretrained` of these models and processors also writes the code of their classes, of the
    pipeline and of their imports. The configuration refers to this code.
    """
    with ExitStack() as restore:
        for part in parts:
            _register(type(part), part.auto_class, restore)
            config = getattr(part, "config", None)
            if config is not None:
                _register(type(config), "AutoConfig", restore)
                # Callbacks run in reverse order.
                restore.callback(vars(config).update, dict(vars(config)))
                restore.callback(vars(config).clear)
                config.auto_map = {"AutoModel": "modeling_gtransformer.GTransformerModel"}
                if PIPELINES:
                    config.custom_pipelines = {
                        task: {"impl": _source_of(pipeline), "pt": ["AutoModelForSeq2SeqLM"], "type": "text"}
                        for task, pipeline in PIPELINES.items()
                    }
        yield


def _register(cls: type, auto_class: str, restore: ExitStack) -> None:
    restore.callback(setattr, cls, "_auto_class", cls._auto_class)  # type: ignore[attr-defined]
    cls._auto_class = auto_class  # type: ignore[attr-defined]


def _source_of(cls: type) -> str:
    """Returns the reference of a configuration to a class in a file beside it."""
    return f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}"


def _card_of(folder: Path) -> Any:
    """Returns the model card of a folder, if its tag, or without tags the configuration beside it, identifies a
    G-Transformer."""
    if not (folder / "README.md").is_file():
        return None
    card, config = ModelCard.load(folder / "README.md"), folder / "config.json"
    if TAGS[0] in (card.data.tags or []):
        return card
    is_ours = config.is_file() and json.loads(config.read_text(encoding="utf-8")).get("model_type") == "gtransformer"
    if is_ours and not card.data.tags:
        return card
    logger.warning(
        f"Skipped {folder / 'README.md'}, which has no tag {TAGS[0]}: add the tag if the card describes this model."
    )
    return None


class PublishMixin:
    """`push_to_hub` with code, tags, and the model card beside the checkpoint."""

    auto_class: str

    def save_pretrained(self, save_directory: str | os.PathLike, **kwargs: Any) -> Any:
        """Saves like Transformers, including the code of the pipelines if the model is saved with code."""
        saved = super().save_pretrained(save_directory, **kwargs)  # type: ignore[misc]
        if hasattr(self, "config") and type(self)._auto_class:  # type: ignore[attr-defined]
            for pipeline in PIPELINES.values():
                custom_object_save(pipeline, save_directory)
        return saved

    def push_to_hub(self, repo_id: str, *, tags: list[str] | str | None = None, **kwargs: Any) -> CommitInfo:
        """
        Uploads in one commit the files of `save_pretrained`, their code, and the G-Transformer card of the folder that
        this was loaded from, or else a generic card.

        Raises:
            ValueError: the base of an adapter is a local folder.
        """
        for part in self._parts():
            base = getattr(part, "adapter_base", None)
            if base and Path(base).exists():
                raise ValueError(
                    f"The adapter's base {base} is a local folder: publish the base first, then train or load the "
                    "adapter with the base's name on the Hub."
                )
        own = [tags] if isinstance(tags, str) else list(tags or [])
        with with_code(*self._parts()):
            return super().push_to_hub(repo_id, tags=[*TAGS, *own], **kwargs)  # type: ignore[misc]

    def _upload_modified_files(self, working_dir: str, *args: Any, **kwargs: Any) -> CommitInfo:
        source = Path(self._loaded_from())
        card = _card_of(source) if self._loaded_from() else None
        if card is not None:
            given = ModelCard.load(Path(working_dir, "README.md")).data.tags or []
            card.data.tags = list(dict.fromkeys([*(card.data.tags or []), *given]))
            card.save(Path(working_dir, "README.md"))
        return super()._upload_modified_files(working_dir, *args, **kwargs)  # type: ignore[misc]

    def _parts(self) -> list[Any]:
        """Returns the models and processors to save."""
        return [self]

    def _loaded_from(self) -> str:
        """Returns the folder or repository that this was loaded from, if any."""
        return ""


def _base_of_adapter(name: str, hub: dict) -> str | None:
    """Returns the name of the base model of an adapter with its own configuration; `None` for other checkpoints."""
    if name is None or any(Path(name).glob("model*.safetensors")) or any(Path(name).glob("pytorch_model*")):
        return None
    try:
        adapter = cached_file(name, "adapter_config.json", **hub)
        cached_file(name, "config.json", **hub)
    except OSError:  # a file is missing or unreachable
        return None
    return json.loads(Path(adapter).read_text(encoding="utf-8")).get("base_model_name_or_path")


class AdapterMixin:
    """Loads and saves adapters with their configuration of global attention."""

    config: GTransformerConfig
    config_class: Any
    name_or_path: str
    # Names of an adapter's base, and of its own folder or repository.
    adapter_base: str | None = None
    adapter_folder: str | None = None
    # Tensors that the checkpoint lacks. They have random weights until training.
    missing_tensors: Sequence[str] = ()

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, *args, config=None, **kwargs):
        """Loads like Transformers, and records missing tensors. For an adapter, loads its base model with the
        configuration of the adapter."""
        with_report = kwargs.pop("output_loading_info", False)
        adapter = dict(kwargs.pop("adapter_kwargs", None) or {})
        # The Auto classes resolve the base first, and pass its configuration.
        resolved = adapter.get("_adapter_model_path")
        name = resolved or pretrained_model_name_or_path
        hub = {key: kwargs[key] for key in HUB_ARGUMENTS if key in kwargs}
        base = _base_of_adapter(name, hub)
        if base is not None:
            adapter["_adapter_model_path"], pretrained_model_name_or_path = str(name), base
            if resolved or config is None:
                known = cls.config_class.__dataclass_fields__
                fields = {key: kwargs.pop(key) for key in [*kwargs] if key in known}
                config = cls.config_class.from_pretrained(name, **hub, **fields)
        if adapter:
            kwargs["adapter_kwargs"] = adapter
        model, report = super().from_pretrained(  # type: ignore[misc]
            pretrained_model_name_or_path, *args, config=config, output_loading_info=True, **kwargs
        )
        model.missing_tensors = sorted(report["missing_keys"])
        if base is not None:
            model.adapter_base, model.adapter_folder = base, str(name)
        return (model, report) if with_report else model

    def train(self, mode: bool = True):
        """Sets the mode like torch. Training clears `missing_tensors`."""
        if mode:
            self.missing_tensors = []
        return super().train(mode)  # type: ignore[misc]

    def set_adapter_weights(self, file: str | Path, adapter_name: str = "default") -> None:
        """Loads an `adapter_model.safetensors` into the named adapter."""
        try:
            from peft import set_peft_model_state_dict
        except ImportError as error:
            raise ImportError("Adapters need peft: pip install peft") from error

        weights = {name.removeprefix("base_model.model."): weight for name, weight in load_file(file).items()}
        set_peft_model_state_dict(self, weights, adapter_name)

    def add_adapter(self, *args, **kwargs):
        super().add_adapter(*args, **kwargs)  # type: ignore[misc]
        self.adapter_base = self.name_or_path

    def save_pretrained(self, save_directory, *args, **kwargs):
        """Saves like Transformers, tied weights once, and adds the configuration of an adapter."""
        if weights := kwargs.get("state_dict"):
            # FSDP gathers a copy of the embeddings for each of their names.
            tied = self.all_tied_weights_keys  # type: ignore[attr-defined]
            kwargs["state_dict"] = {name: value for name, value in weights.items() if tied.get(name) not in weights}
        super().save_pretrained(save_directory, *args, **kwargs)  # type: ignore[misc]
        if getattr(self, "peft_config", None):
            self.config.save_pretrained(save_directory)
