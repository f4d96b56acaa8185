"""Licences of pretrained weights; the licence of a fine-tuned model keeps their conditions."""

from pathlib import Path

from huggingface_hub import ModelCard

from ..runtime.atomic_file import read_json, write_json
from .arguments import ARGUMENTS_NAME


# Conditions of Creative Commons that a licence must keep: no commercial use, share alike, no derivatives.
CONDITIONS = frozenset({"nc", "sa", "nd"})
# Licences without conditions, not even attribution.
PUBLIC_DOMAIN = frozenset({"cc0-1.0", "unlicense", "pddl", "wtfpl", "0bsd"})
# Licences that ask for attribution and nothing else.
PERMISSIVE = frozenset(
    [
        "mit",
        "apache-2.0",
        "bsd",
        "bsd-2-clause",
        "bsd-3-clause",
        "isc",
        "zlib",
        "afl-3.0",
        "bsl-1.0",
        "ecl-2.0",
        "ncsa",
    ]
)
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


def check_license(license: str | None, base: str | None, of_base: str | None) -> None:
    """
    Refuses a licence that the licence of the base model does not allow. If either side has no licence, nothing is
    refused.

    Raises:
        ValueError: weights that started from `base` may not be published under `license`.
    """
    if not (license and of_base):
        return
    if "nd" in _conditions(of_base):
        raise ValueError(f"{base} is under {of_base}, which does not allow derived models to be published.")
    if not _keeps_conditions(license, of_base):
        raise ValueError(
            f"The weights started from {base}, which is under {of_base}, and {license} is not known to keep its "
            f"conditions. Pass license={of_base!r}, or another licence that keeps them."
        )


def keep_origin(folder: Path, checkpoint: str) -> None:
    """Records in the folder of a converted checkpoint which one it was made from, whose licence applies."""
    write_json(folder / ARGUMENTS_NAME, {"model_name_or_path": checkpoint})


def _conditions(license: str) -> frozenset[str]:
    return CONDITIONS & set(license.split("-")) if license.startswith("cc-by") else frozenset()


def _keeps_conditions(license: str, of_base: str) -> bool:
    """Tells whether weights under one licence may be published under another, as far as that is known."""
    if license == of_base or of_base in PUBLIC_DOMAIN:
        return True
    if "sa" in _conditions(of_base):  # share-alike: the same conditions, in this version or a later one
        is_same = license.startswith("cc-by") and _conditions(license) == _conditions(of_base)
        return is_same and license.rpartition("-")[2] >= of_base.rpartition("-")[2]
    asks_little = of_base in PERMISSIVE or of_base.startswith("cc-by")
    return asks_little and license not in PUBLIC_DOMAIN and _conditions(license) >= _conditions(of_base)


def _license_in_card(card: str) -> str | None:
    try:
        license = ModelCard.load(card, ignore_metadata_errors=True).data.to_dict().get("license")
    except Exception:
        # Offline, a private base or no card: in each case, the licence is unknown.
        return None
    return license if isinstance(license, str) and license != "other" else None
