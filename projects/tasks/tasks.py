"""The tasks: which component learns them."""

COMPONENTS = {
    "ewt": "tagger",
    "wnut17": "ner",
    "polarity": "textcat",
    "ko_gsd": "tagger",
    "nsmc": "textcat",
    "gum": "ner",
    "uner_ewt": "ner",
}
# Treebanks with sentences that train and test share: `new` is test without them.
REPEATED = ("ko_gsd",)
ENGLISH = "ewt,wnut17,polarity"
