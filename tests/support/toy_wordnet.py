"""A WordNet of a few words, in the format of its dict folder (wndb(5WN))."""

# Part of speech -> synsets: their words and gloss, the first sense of a word first.
SYNSETS = {
    "noun": [
        (["bank"], "the side of a river"),
        (["bank", "depository_financial_institution"], "a place for money"),
        (["mouse"], "a small rodent"),
        (["inch", "in"], "a unit of length"),
    ],
    "verb": [(["bank"], "do business with a bank"), (["run"], "move fast")],
    "adj": [(["green"], "of the colour of grass")],
    "adv": [(["fast"], "quickly")],
}
_LETTERS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
RIVER, MONEY, TRADE = "bank%1:00:00::", "bank%1:00:01::", "bank%2:00:00::"


def write_wordnet(folder):
    """Write the folder; RIVER is counted twice, MONEY once. Returns its path."""
    folder.mkdir(parents=True)
    for name, synsets in SYNSETS.items():
        data, offsets = "", {}
        ids = {}
        for words, gloss in synsets:
            offset = len(data)
            cells = []
            for word in words:
                ids[word] = ids.get(word, -1) + 1
                cells.append(f"{word} {ids[word]:x}")
                offsets.setdefault(word, []).append(offset)
            frames = " 00" if name == "verb" else ""
            head = f"{offset:08} 00 {_LETTERS[name]} {len(words):02x} {' '.join(cells)} 000{frames}"
            data += f"{head} | {gloss}\n"
        index = ""
        for word, found in sorted(offsets.items()):
            places = " ".join(f"{offset:08}" for offset in found)
            index += f"{word} {_LETTERS[name]} {len(found)} 0 {len(found)} 0 {places}\n"
        (folder / f"data.{name}").write_text(data)
        (folder / f"index.{name}").write_text(index)
        (folder / f"{name}.exc").write_text("mice mouse\n" if name == "noun" else "ran run\n")
    # Others around them: nltk's search needs some lines.
    counts = [f"{letter}%1:00:00:: 1 1" for letter in "abcdefwxyz"]
    counts[2:2] = [f"{RIVER} 1 2", f"{MONEY} 2 1"]
    (folder / "cntlist.rev").write_text("".join(f"{line}\n" for line in sorted(counts)))
    return folder


def make_lines(n_docs=20):
    """Sentences in which the neighbours of "bank" tell its sense; "in" is no inch."""
    lines = []
    for i in range(n_docs):
        for words, key in (("the river bank in green", RIVER), ("my money bank in green", MONEY)):
            tokens = [*words.split(), "."]
            instances = [[2, "bank", "NN", [key]], [4, "green", "JJ", ["green%3:00:00::"]]]
            lines.append({"id": f"d{i}.s1", "tokens": tokens, "instances": instances})
    return lines
