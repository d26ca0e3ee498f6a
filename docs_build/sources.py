"""Pages with source files, so that the reference can link to a line without a network."""

import inspect
from pathlib import Path
from typing import Any, Dict

ROOT = Path(__file__).resolve().parent.parent
_PAGE = """---
title: {path}
search:
  exclude: true
---

# {name}

`{path}`

```python linenums="1"
{text}
```
"""


class Sources:
    """The files that the reference refers to.

    pages (Dict[str, str]): Markdown of each, by its place in docs/.
    """

    def __init__(self) -> None:
        self.pages: Dict[str, str] = {}

    def link(self, thing: Any, label: str = "") -> str:
        """thing (Any): a class or a function of the package. label (str): text of the link; ""
        for file and line. RETURNS (str): HTML, for a page in docs/reference/, to its
        first line."""
        thing = inspect.unwrap(thing)
        path = Path(inspect.getsourcefile(thing) or "").resolve()
        return self.link_line(path, inspect.getsourcelines(thing)[1], label)

    def link_line(self, path: Path, line: int, label: str = "") -> str:
        """path (Path): a file of the repository. line (int): from 1. label (str): as in
        `link`. RETURNS (str): HTML."""
        name = path.relative_to(ROOT).as_posix()
        place = "source/" + name.removesuffix(".py").replace("/", ".")
        if f"reference/{place}.md" not in self.pages:
            text = path.read_text("utf-8").rstrip()
            self.pages[f"reference/{place}.md"] = _PAGE.format(path=name, name=path.name, text=text)
        # HTML, since MkDocs does not know the anchors of lines and would warn of a missing one.
        return f'<a href="{place}.html#__codelineno-0-{line}">{label or f"{name}:{line}"}</a>'
