"""Make the links of README.md absolute, for package indexes: python .ci/absolute_links.py REPOSITORY_URL v0.2.0

Run from the root of the repository, before the package is built. Indexes show the image only if it is the file itself.
"""

import re
import sys
from pathlib import Path


def main(repository: str, tag: str) -> None:
    readme = Path("README.md")
    text = readme.read_text(encoding="utf-8")
    for mark, kind in ((r"!\[[^]]*", "raw"), (r"\[[^]]*", "blob")):
        text = re.sub(rf"({mark}\]\()(?![a-z]+:|#)", rf"\g<1>{repository}/{kind}/{tag}/", text)
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
