"""The rooms of the package and what they import: `python -m tests.support.rooms` prints the drawing
of docs/design.md."""

import ast

from .helpers import ROOT

PACKAGE = ROOT / "spacy_elmo"
FILES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
# Everybody imports these.
GROUND = {"errors", "registry", "util"}


def get_room(path):
    return path.parts[0].removesuffix(".py")


def find_imports(path, *, top_level_only=False):
    """The modules that a file imports, each as a list of names."""
    tree = ast.parse((PACKAGE / path).read_text("utf-8"))
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")
        elif isinstance(node, ast.ImportFrom):
            base = list(path.parts[: len(path.parts) - node.level])
            names = [*base, *(node.module.split(".") if node.module else [])]
            if names:
                yield ["spacy_elmo", *names]
            else:
                yield from (["spacy_elmo", alias.name] for alias in node.names)


def find_arrows():
    """Room -> the rooms that it imports, the ground left out."""
    arrows = {}
    for path in FILES:
        room = get_room(path)
        if room != "__init__":
            imported = {names[1] for names in find_imports(path) if names[0] == "spacy_elmo"}
            arrows.setdefault(room, set()).update(imported - GROUND - {room})
    return {room: rooms for room, rooms in arrows.items() if room not in GROUND}


def draw():
    """Mermaid's lines: an arrow that others make up for is left out."""
    arrows = find_arrows()

    def reach(room):
        return set.union(set(), *({other} | reach(other) for other in arrows[room]))

    lines = []
    for room in sorted(arrows):
        indirect = set.union(set(), *(reach(other) for other in arrows[room]))
        lines += [f"    {room} --> {other}" for other in sorted(arrows[room] - indirect)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(draw())
