"""A tiny BERT of random weights, with its tokenizer."""

import torch


def write_bert(folder, pieces, **settings):
    """Write the folder: the word pieces, and a model with these settings of `BertConfig`."""
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(pieces))
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(pieces), num_attention_heads=2, intermediate_size=8, **settings
    )
    transformers.BertModel(config).save_pretrained(folder)
    return folder
