"""The rooms of the package and what they import: `python -m tests.support.rooms` draws the picture
of docs/design.md."""

import ast
from itertools import pairwise

from .helpers import ROOT

PACKAGE = ROOT / "spacy_elmo"
FILES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
PICTURE = ROOT / "docs" / "figures" / "rooms.svg"
WIDTH, ROW = 820, 92
FRAME = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>Which room of the package imports which</title>
<style>
text {{ font: 15px system-ui, sans-serif; text-anchor: middle; fill: #111 }}
rect {{ fill: #e8edf7; stroke: #33507f }}
path {{ fill: none; stroke: #33507f; stroke-width: 1.4; marker-end: url(#tip) }}
</style>
<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<polygon points="0,0 8,4 0,8" fill="#33507f"/>
</marker>
<rect width="100%" height="100%" style="fill: #fff; stroke: none"/>
{content}
</svg>
"""
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


def find_direct_arrows():
    """As `find_arrows`, without the arrows that others make up for."""
    arrows = find_arrows()

    def reach(room):
        return set.union(set(), *({other} | reach(other) for other in arrows[room]))

    return {
        room: sorted(rooms - set.union(set(), *(reach(other) for other in rooms)))
        for room, rooms in arrows.items()
    }


def draw():
    """An SVG: each room stands above those that it imports."""
    arrows = find_direct_arrows()
    levels, routes = find_routes(arrows)
    places = find_places(levels, routes)
    lines = [draw_line([places[stop] for stop in route]) for route in routes]
    boxes = [draw_box(room, *places[room]) for room in sorted(arrows)]
    height = (len(levels) - 1) * ROW + 80
    return FRAME.format(width=WIDTH, height=height, content="\n".join(lines + boxes))


def find_routes(arrows):
    """The levels, from the top, with their rooms and the stops of arrows that pass them by; and the
    stops of each arrow, its rooms included."""

    def rise(room):
        return max((rise(other) + 1 for other in arrows[room]), default=0)

    heights = {room: rise(room) for room in sorted(arrows)}
    levels = [[] for _ in range(max(heights.values()) + 1)]
    for room, height in heights.items():
        levels[-1 - height].append(room)
    routes = []
    for room in heights:
        for other in arrows[room]:
            stops = [(room, other, i) for i in range(heights[room] - 1, heights[other], -1)]
            for stop in stops:
                levels[-1 - stop[2]].append(stop)
            routes.append([room, *stops, other])
    return levels, routes


def find_places(levels, routes):
    """Rooms and stops from left to right by where the arrows to them come from."""
    places = {}
    for depth, level in enumerate(levels):
        sources = {item: [] for item in level}
        for route in routes:
            for above, item in pairwise(route):
                if item in sources:
                    sources[item].append(places[above][0])
        level.sort(key=lambda item: (sum(sources[item]) / max(1, len(sources[item])), str(item)))
        step = WIDTH / (len(level) + 1)
        places.update({item: ((i + 1) * step, depth * ROW + 40) for i, item in enumerate(level)})
    return places


def draw_line(points):
    (x, y), *rest = points
    text = f"M{x:.0f} {y + 17:.0f}"
    y += 17
    for i, (x2, y2) in enumerate(rest):
        y2 -= 21 if i == len(rest) - 1 else 0
        bend = (y2 - y) / 2
        text += f" C{x:.0f} {y + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"
        x, y = x2, y2
    return f'<path d="{text}"/>'


def draw_box(name, x, y):
    return (
        f'<rect x="{x - 66:.0f}" y="{y - 17:.0f}" width="132" height="34" rx="5"/>'
        f'<text x="{x:.0f}" y="{y + 5:.0f}">{name}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(), "utf-8")
