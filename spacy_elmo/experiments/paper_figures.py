"""What Peters et al. 2018 reported, "Deep contextualized word representations"."""

# By experiment: where it stands, and what it says.
_PAPER = {
    "gain": (
        "Table 1: baseline and ELMo, test: SQuAD F1 81.1 and 85.8, SNLI accuracy 88.0 and 88.7, "
        "SRL F1 81.4 and 84.6, coreference F1 67.2 and 70.4, NER F1 90.15 and 92.22, SST-5 "
        "accuracy 51.4 and 54.7: 6 to 25 % fewer errors."
    ),
    "vectors": (
        "Table 1, whose baselines all have static vectors (GloVe, or such as them), as the rows "
        "here that name them."
    ),
    "weighting": (
        "Table 2, dev: baseline, last layer only, all layers with λ = 1, with λ = 0.001: SQuAD "
        "80.8, 84.7, 85.0, 85.2; SNLI 88.1, 89.1, 89.3, 89.5; SRL 81.6, 84.1, 84.6, 84.8. All "
        "layers beat the last one, and a small λ, which lets the weights differ, is best."
    ),
    "placement": (
        "Table 3, dev: ELMo at the input, at input and output, at the output: SQuAD 85.1, 85.6, "
        "84.8; SNLI 88.9, 89.5, 88.7; SRL 84.7, 84.3, 80.9. Both places are best where the "
        "model attends over its output, the input alone where it does not."
    ),
    "samples": (
        "Figure 1 and section 5.4: with ELMo, SRL on 1 % of the training set is as good as the "
        "baseline on 10 %; and the best dev score of the baseline, reached after 486 epochs, is "
        "passed in epoch 10."
    ),
    "weights": (
        "Figure 2: at the input the tasks favour the first LSTM layer, most of all coreference "
        "and SQuAD; at the output the weights are balanced, with some preference for the lower "
        "layers."
    ),
    "senses": (
        "Table 5, F1 on all-words tasks: WordNet's first sense 65.9, first biLM layer 67.4, "
        "second 69.0; best systems then 70.1. The higher layer knows more of senses."
    ),
    "probe": (
        "Table 6, accuracy on the Penn Treebank: first biLM layer 97.3, second 96.8; best "
        "tagger then 97.8. The lower layer knows more of syntax."
    ),
    "neighbors": (
        'Table 4: GloVe\'s neighbours of "play" are "playing", "game", "games", "played", '
        '"players", of one sense mixed with the other; the biLM\'s nearest contexts of "a '
        'spectacular play on Alusik\'s grounder" are of sport, those of "a Broadway play for '
        'Garson" are of the stage.'
    ),
}
# By experiment of our own: what it is.
_OURS = {
    "sense_map": (
        "a vector of a word alone is one point for all of its contexts; those of the biLM should "
        "lie near others of their sense."
    ),
    "search": "the paragraph that answers a question is looked for, by ELMo and by BM25.",
}


def describe_paper(kind: str) -> str:
    """kind (str): of an experiment. RETURNS (str): What the paper says of it, or that it is none
    of the paper's."""
    if kind in _PAPER:
        return f"The paper: {_PAPER[kind]}"
    return f"Not in the paper: {_OURS[kind]}"
