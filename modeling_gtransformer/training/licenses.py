"""Licences of pretrained weights; the licence of a fine-tuned model keeps their conditions."""

from pathlib import Path

from huggingface_hub import ModelCard

from ..runtime.atomic_file import read_json, write_json
from .arguments import ARGUMENTS_NAME


# Licences without conditions, not even attribution.
PUBLIC_DOMAIN = {"cc0-1.0", "unlicense", "pddl", "wtfpl", "0bsd"}
# Licences that ask for attribution and nothing else, so that fine-tuned weights may have another licence.
PERMISSIVE = {"mit", "apache-2.0", "bsd", "bsd-2-clause", "bsd-3-clause", "isc", "zlib", "afl-3.0", "bsl-1.0"}
PERMISSIVE |= {"ecl-2.0", "ncsa", "cc-by-2.0", "cc-by-3.0", "cc-by-4.0"}
# Families whose licence is known without a look at a card.
KNOWN = {"facebook/nllb-200": "cc-by-nc-4.0"}


def base_license(checkpoint: str | None) -> str | None:
    """
    Finds the identifier of the licence of a checkpoint, a folder or a name on the Hub: in its card or, if it has none,
    in that of the checkpoint that it was trained from. Returns `None` if the licence cannot be found.
    """
    if checkpoint is None:
        return None
    folder = Path(checkpoint)
    if not folder.is_dir():
        known = (license for name, license in KNOWN.items() if checkpoint.startswith(name))
        return next(known, None) or _license_in_card(checkpoint)
    found = _license_in_card(str(folder / "README.md")) if (folder / "README.md").exists() else None
    return found or base_license(read_json(folder / ARGUMENTS_NAME, {}).get("model_name_or_path"))


def is_allowed(license: str | None, of_base: str | None) -> bool:
    """Returns whether weights under the second licence may be published under the first; an unknown licence allows
    everything. Licences with conditions, such as share alike, allow only themselves."""
    if not (license and of_base) or of_base in PUBLIC_DOMAIN:
        return True
    if "nd" in of_base.split("-"):  # no derivatives
        return False
    return license == of_base or (of_base in PERMISSIVE and license not in PUBLIC_DOMAIN)


def keep_origin(folder: Path, checkpoint: str) -> None:
    """Records in the folder of a converted checkpoint which one it was made from, whose licence applies."""
    write_json(folder / ARGUMENTS_NAME, {"model_name_or_path": checkpoint})


def _license_in_card(card: str) -> str | None:
    try:
        license = ModelCard.load(card, ignore_metadata_errors=True).data.to_dict().get("license")
    except Exception:
        # Offline, a private base or no card: in each case, the licence is unknown.
        return None
    return license if isinstance(license, str) and license != "other" else None
