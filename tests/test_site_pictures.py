"""Pictures of the site: links to their files, legible on a phone and in the dark."""

import re

import pytest
from PIL import Image

from docs_build.pictures import (
    DARK,
    DOCS,
    DRAWINGS,
    darken,
    frame_pictures,
    make_dark_drawings,
    read_size,
)

pytest.importorskip("mkdocs")
PAGE = '<p>Some <img src="a.png"></p>\n<p><img alt="A" src="../figures/{name}" /></p>'
# Letters on the ground and on the boxes, each of both schemes.
LETTERS = [("#111", ground) for ground in DARK if ground.startswith(("#f", "#c", "#d7", "#e"))]


def get_luminance(color):
    parts = color[1:] if len(color) == 7 else "".join(2 * part for part in color[1:])
    shares = [int(parts[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))


def get_contrast(*colors):
    low, high = sorted(map(get_luminance, colors))
    return (high + 0.05) / (low + 0.05)


def test_drawings_have_dark_variants_with_other_colors():
    made = make_dark_drawings()

    assert set(made) == {f"figures/{path.stem}-dark.svg" for path in DRAWINGS}
    for path in DRAWINGS:
        dark, light = made[f"figures/{path.stem}-dark.svg"], path.read_text("utf-8")
        assert not set(DARK) & set(re.findall("#[0-9a-f]+", dark))
        assert re.sub("#[0-9a-f]+", "", dark) == re.sub("#[0-9a-f]+", "", light)


def test_a_color_without_a_dark_one_is_refused():
    with pytest.raises(KeyError, match="#123456"):
        darken('<rect fill="#123456"/>')


@pytest.mark.parametrize(("letters", "ground"), [*LETTERS, ("#333", "#fff")])
def test_letters_can_be_read_in_both_schemes(letters, ground):
    assert get_contrast(letters, ground) > 7
    assert get_contrast(DARK[letters], DARK[ground]) > 7


@pytest.mark.parametrize("name", ["#444", "#666", "#33507f", "#a35a00", "#0a5a9c", "#00704a"])
def test_lines_can_be_seen_in_both_schemes(name):
    assert get_contrast(name, "#fff") > 3 and get_contrast(DARK[name], DARK["#fff"]) > 3


def test_a_picture_is_a_link_to_its_file():
    name = "sense_map_interest_in_semcor_3f33b8fe.png"
    text, picture = frame_pictures(PAGE.format(name=name), "guides/senses.html", ()).split("\n")

    assert text == '<p>Some <img src="a.png"></p>'
    assert f'<p class="picture"><a href="../figures/{name}"><img alt="A"' in picture
    assert 'width="1320" height="672" style="--width: 792px"></a></p>' in picture


def test_a_picture_with_a_dark_variant_changes_with_the_scheme():
    files = {"figures/rooms.svg", "figures/rooms-dark.svg"}
    _, light, dark = frame_pictures(PAGE.format(name="rooms.svg"), "x/y.html", files).split("\n")

    assert light.startswith('<p class="picture only-light"><a href="../figures/rooms.svg">')
    assert dark == light.replace("only-light", "only-dark").replace("rooms.svg", "rooms-dark.svg")


def test_dark_pictures_are_as_large_as_light_ones():
    for path in DOCS.glob("figures/*-dark.png"):
        assert read_size(path) == read_size(path.with_name(path.name.replace("-dark", "")))


def test_sizes_are_those_of_the_file(tmp_path):
    Image.new("L", (300, 100)).save(tmp_path / "shot.png")
    Image.new("L", (300, 100)).save(tmp_path / "drawn.png", dpi=(200, 200))
    (tmp_path / "x.svg").write_text('<svg viewBox="0 0 760 480"/>')

    assert read_size(tmp_path / "shot.png") == (300, 100, 300)
    assert read_size(tmp_path / "drawn.png") == (300, 100, 108)
    assert read_size(tmp_path / "x.svg") == (760, 480, 760)


def test_the_dark_ground_is_that_of_drawn_figures():
    with Image.open(DOCS / "figures/bank-dark.png") as image:
        ground = bytes(image.convert("RGB").getpixel((0, 0)))
    assert f"#{ground.hex()}" == DARK["#fff"]
