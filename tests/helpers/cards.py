"""What a card tells its reader to run."""

import re
from pathlib import Path


def snippets(card):
    return re.findall(r"```python\n(.*?)```", Path(card).read_text(encoding="utf-8"), re.DOTALL)
