"""Print the changelog's section for a tag: python .ci/release_notes.py v0.2.0

Run from the root of the repository. Ends with an error if the tag is not the package's version, or has no section.
"""

import re
import sys
from pathlib import Path


def main(tag: str) -> None:
    code, changelog = (
        Path(name).read_text(encoding="utf-8") for name in ("modeling_gtransformer/hub.py", "CHANGELOG.md")
    )
    [version] = re.findall(r'^__version__ = "(.+)"$', code, re.MULTILINE)
    if tag != f"v{version}":
        sys.exit(f"The tag is {tag}, the package's version {version}: change modeling_gtransformer/hub.py or the tag.")
    section = re.search(rf"^## \[{re.escape(version)}\].*\n((?:(?!## ).*\n?)*)", changelog, re.MULTILINE)
    if section is None or not section[1].strip():
        sys.exit(f"CHANGELOG.md has no section [{version}]: give Unreleased this name, and a date.")
    print(section[1].strip())


if __name__ == "__main__":
    main(*sys.argv[1:])
