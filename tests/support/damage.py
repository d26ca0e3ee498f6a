"""Damage to files: what a bad disk, a broken copy or a stranger makes of them."""

import os
import random
import shutil
from pathlib import Path


def flip(path, bit):
    """Turn one bit of a file over."""
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def mutate(path, rng):
    """Damage a file in one of many ways. Returns what was done."""
    content = path.read_bytes()
    place = rng.randrange(len(content) + 1)
    kind = rng.choice(["flip"] * 4 + ["cut", "grow", "drop", "swap", "noise", "zero", "double"])
    if kind == "flip":
        flip(path, rng.randrange(8 * len(content)))
        return kind
    noise = bytes(rng.randrange(256) for _ in range(rng.choice([1, 4, 30])))
    other = rng.randrange(len(content) + 1)
    first, last = min(place, other), max(place, other)
    path.write_bytes(
        {
            "cut": content[:place],
            "grow": content[:place] + noise + content[place:],
            "drop": content[:place] + content[place + len(noise) :],
            "swap": content[:first] + content[last:] + content[first:last],
            "noise": content[:place] + noise + content[place + len(noise) :],
            "zero": content[:place] + bytes(len(noise)) + content[place + len(noise) :],
            "double": content + content,
        }[kind]
    )
    return kind


def replace_by_others(path):
    """Put other things in the place of a file, one after the other. Yields what."""
    makers = {
        "nothing": lambda path: None,
        "a folder": Path.mkdir,
        "a pipe": os.mkfifo,
        "an empty file": Path.touch,
    }
    for kind, make in makers.items():
        if path.is_dir():
            path.rmdir()
        path.unlink(missing_ok=True)
        make(path)
        yield kind


def each_mutation(folder, copy, n, seed=0):
    """Damage copies of a folder, one file at a time, each file n times. Yields the name of
    the file and what was done; what is the same afterwards is left out."""
    rng = random.Random(seed)
    for path in sorted(p for p in Path(folder).rglob("*") if p.is_file() and p.stat().st_size):
        for _ in range(n):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(folder, copy)
            damaged = Path(copy) / path.relative_to(folder)
            kind = mutate(damaged, rng)
            if damaged.read_bytes() != path.read_bytes():
                yield path.name, kind
