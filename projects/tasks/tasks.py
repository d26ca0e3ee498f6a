"""The tasks: which component learns them."""

COMPONENTS = {
    "ewt": "tagger",
    "wnut17": "ner",
    "polarity": "textcat",
    "ko_gsd": "tagger",
    "gum": "ner",
    "uner_ewt": "ner",
}
ENGLISH = "ewt,wnut17,polarity"
