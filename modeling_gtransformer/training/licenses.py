"""Licences of pretrained weights, and whether they permit a licence of fine-tuned weights."""

from pathlib import Path

from huggingface_hub import ModelCard

from ..runtime.atomic_file import read_json, write_json
from .arguments import ARGUMENTS_NAME


# Licences without conditions, not even attribution.
PUBLIC_DOMAIN = {"cc0-1.0", "unlicense", "pddl", "wtfpl", "0bsd"}
# Licences that require only attribution, so fine-tuned weights may have another licence.
PERMISSIVE = {"mit", "apache-2.0", "bsd", "bsd-2-clause", "bsd-3-clause", "isc", "zlib", "afl-3.0", "bsl-1.0"}
PERMISSIVE |= {"ecl-2.0", "ncsa", "cc-by-2.0", "cc-by-3.0", "cc-by-4.0"}
# Model families with a known licence.
KNOWN = {"facebook/nllb-200": "cc-by-nc-4.0"}


def base_license(checkpoint: str | None) -> str | None:
    """
    Returns the licence identifier of a checkpoint, a folder or a Hub name: from its card or, without one, from the
    card of the checkpoint that it was trained from. Returns `None` if the licence is unknown.
    """
    if checkpoint is None:
        return None
    folder = Path(checkpoint)
    if not folder.is_dir():
        known = (license for name, license in KNOWN.items() if checkpoint.startswith(name))
        return next(known, None) or _license_in_card(checkpoint)
    found = _license_in_card(str(folder / "README.md")) if (folder / "README.md").exists() else None
    base = read_json(folder / ARGUMENTS_NAME, {}).get("model_name_or_path")
    is_own = base is not None and Path(base).resolve() == folder.resolve()  # trained in the folder of its start
    return found or (None if is_own else base_license(base))


def is_allowed(license: str | None, of_base: str | None) -> bool:
    """
    Returns whether weights derived from weights under the licence `of_base` may be published under `license`. Unknown
    licences permit everything. Licences with conditions, such as share alike, permit only themselves.
    """
    if not (license and of_base) or of_base in PUBLIC_DOMAIN:
        return True
    if "nd" in of_base.split("-"):  # no derivatives
        return False
    return license == of_base or (of_base in PERMISSIVE and license not in PUBLIC_DOMAIN)


def keep_origin(folder: Path, checkpoint: str) -> None:
    """Records the original of a converted checkpoint. Its licence applies."""
    write_json(folder / ARGUMENTS_NAME, {"model_name_or_path": checkpoint})


def _license_in_card(card: str) -> str | None:
    try:
        license = ModelCard.load(card, ignore_metadata_errors=True).data.to_dict().get("license")
    except Exception:
        # Offline, a private base or no card: the licence is unknown.
        return None
    return license if isinstance(license, str) and license != "other" else None
