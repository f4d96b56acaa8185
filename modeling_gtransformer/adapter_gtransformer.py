"""Adapters (peft) whose base model may lack global attention: their own configuration says which layers have it."""

import json
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from transformers.utils import cached_file

from .configuration_gtransformer import GTransformerConfig


CONFIG_FIELDS = frozenset(GTransformerConfig.__dataclass_fields__)


def _find_file(name: str, file: str, hub: dict[str, Any]) -> str | None:
    """The path of a file of a checkpoint; `None` if it has none, or cannot be reached."""
    try:
        return cached_file(name, file, **hub)
    except OSError:
        return None


def _hub_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments that say where on the Hub to look."""
    own = {**(arguments.get("adapter_kwargs") or {}), **arguments}
    return {key: own[key] for key in ("cache_dir", "local_files_only", "revision", "token") if key in own}


def _base_of_adapter(name: str, hub: dict) -> str | None:
    """Returns the name of the base model if this is the name of an adapter with its own configuration."""
    if name is None or any(Path(name).glob("model*.safetensors")) or any(Path(name).glob("pytorch_model*")):
        return None
    adapter = _find_file(name, "adapter_config.json", hub)
    if adapter is None or _find_file(name, "config.json", hub) is None:
        return None
    return json.loads(Path(adapter).read_text(encoding="utf-8")).get("base_model_name_or_path")


class AdapterMixin:
    """Loads and saves adapters together with the configuration that says which layers have global attention."""

    config: GTransformerConfig
    config_class: Any
    name_or_path: str
    # A model with an adapter knows the name of its base, and where the adapter came from.
    adapter_base: str | None = None
    adapter_folder: str | None = None

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, *args, config=None, **kwargs):
        """Loads as Transformers does. The configuration of an adapter says which layers have global attention: its
        base model, which is loaded with it, need not have any."""
        adapter = dict(kwargs.pop("adapter_kwargs", None) or {})
        # The Auto classes have already looked up the base, and pass its configuration.
        name = adapter.get("_adapter_model_path") or pretrained_model_name_or_path
        given = None if adapter.get("_adapter_model_path") else config
        hub = _hub_arguments(kwargs)
        base = _base_of_adapter(name, hub)
        if base is not None:
            adapter["_adapter_model_path"], pretrained_model_name_or_path = str(name), base
            fields = {key: kwargs.pop(key) for key in [*kwargs] if key in CONFIG_FIELDS} if given is None else {}
            config = given if given is not None else cls.config_class.from_pretrained(name, **hub, **fields)
        if adapter:
            kwargs["adapter_kwargs"] = adapter
        loaded = super().from_pretrained(  # type: ignore[misc]
            pretrained_model_name_or_path, *args, config=config, **kwargs
        )
        if base is not None:
            model = loaded[0] if isinstance(loaded, tuple) else loaded
            model.adapter_base, model.adapter_folder = base, str(name)
        return loaded

    def load_adapter(self, peft_model_id=None, adapter_name=None, *args, **kwargs):
        """Loads as Transformers does, plus the modules that an adapter holds in full, which 5.17 leaves out."""
        loaded = super().load_adapter(peft_model_id, adapter_name, *args, **kwargs)  # type: ignore[misc]
        if peft_model_id is not None:
            file = _find_file(peft_model_id, "adapter_model.safetensors", _hub_arguments(kwargs))
            if file is not None:
                self.set_adapter_weights(file, adapter_name or "default")
        return loaded

    def set_adapter_weights(self, file: str | Path, adapter_name: str = "default") -> None:
        """Loads the weights of an `adapter_model.safetensors` into the adapter of that name."""
        try:
            from peft import set_peft_model_state_dict
        except ImportError as error:
            raise ImportError("An adapter needs peft: pip install peft") from error

        weights = {name.removeprefix("base_model.model."): weight for name, weight in load_file(file).items()}
        set_peft_model_state_dict(self, weights, adapter_name)

    def add_adapter(self, *args, **kwargs):
        super().add_adapter(*args, **kwargs)  # type: ignore[misc]
        self.adapter_base = self.name_or_path

    def save_pretrained(self, save_directory, *args, **kwargs):
        """Saves as Transformers does, and writes the configuration beside an adapter."""
        super().save_pretrained(save_directory, *args, **kwargs)  # type: ignore[misc]
        if getattr(self, "peft_config", None):
            self.config.save_pretrained(save_directory)
