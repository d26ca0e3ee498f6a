"""Every message of the library: what happened, what was expected, what to do next.

Codes are never reused. Texts of the command line live in `cli/`.
"""

from spacy.errors import ErrorsWithCodes


class Errors(metaclass=ErrorsWithCodes):
    # Listening
    EL001 = (
        "Component '{name}' listens for vectors of width {found}, but '{upstream}' sends "
        "{expected}. In its listener's block set `width = ${{components.{upstream}.model.width}}`"
        ", and with spacy-elmo.ElmoListener.v1 also "
        "`depth = ${{components.{upstream}.model.depth}}`."
    )
    EL002 = (
        "spacy-elmo.ElmoListener.v1 cannot listen to upstream '*', which any tok2vec "
        'component would claim. Name the component, such as `upstream = "elmo"`.'
    )
    EL003 = (
        "A doc has no layers of '{upstream}', needed while training. If '{upstream}' is in "
        "[training] frozen_components, add it to [training] annotating_components too; if "
        "not, make sure that a component '{upstream}' (factory \"elmo\") comes first in "
        "[nlp] pipeline."
    )
    EL004 = (
        "spacy-elmo.ElmoTok2Vec.v1 has neither `input` nor `output`, so ELMo would not be "
        "in it. Add [...tok2vec.input] or [...tok2vec.output] with `@architectures = "
        '"spacy-elmo.ElmoListener.v1"`, or use spacy.Tok2Vec.v2.'
    )
    EL005 = (
        "spacy-elmo.ElmoTok2Vec.v1 has neither `embed` nor `input`: nothing for `encode` to "
        "read. Add one of the two blocks."
    )
    EL006 = (
        "The model of the component '{name}' has the layers {found}, expected elmo_layers "
        'and scalar_mix. Set `@architectures = "spacy-elmo.Elmo.v1"` in '
        "[components.{name}.model]."
    )
    # Shapes and settings
    EL010 = "{key} = {value} is not possible for a biLM, expected {expected}."
    EL011 = (
        'A biLM with `input = "{value}"` is not available, only: {known}. Remove the key or '
        "set one of these."
    )
    EL012 = "{key} = {value} is too small, expected at least {least}."
    EL013 = (
        "Sentence {i} is a string ('{found}'), which would be read letter by letter. Give a "
        'list of lists of words, such as [["I", "like", "eggs"]].'
    )
    EL014 = (
        "The state has parts of shape {found}, which do not fit the biLM {config}. Pass what "
        "embed_stateful of the same biLM returned, or None to start at zero."
    )
    EL015 = "{key} = {value} is not possible for a mix, expected {expected}."
    # Weights
    EL020 = (
        "The weights in {source} are not those of this model. Missing: {missing}. "
        "Unexpected: {unexpected}. Check that options and weights belong together."
    )
    EL021 = (
        "'{name}' in {source} has the shape {found}, expected {expected}. Check that options "
        "and weights belong together."
    )
    EL022 = (
        "'{name}' in {source} has the type {found}, expected floating-point numbers. Is this "
        "a file of weights?"
    )
    EL023 = (
        "The weights in {source} are of another shape than the component. Configured and "
        "found: {differences}. Set the found values in [components.elmo.model], or have the "
        "whole config written by `python -m spacy elmo init-config config.cfg {arguments}`."
    )
    EL024 = (
        "The component has no weights yet. None are bundled with this version: load some "
        'with `nlp.get_pipe("elmo").load("folder")`, after `nlp.add_pipe("elmo", '
        'config=spacy_elmo.pipe_config("folder"))`; or name a loader in '
        "[initialize.components.elmo.loader] and call `nlp.initialize()`."
    )
    EL025 = (
        "The bundled weights are of another shape than the component. Configured and "
        "bundled: {differences}. Remove these keys from [components.elmo.model]; or load "
        'other weights with `nlp.get_pipe("elmo").load("folder")`; or, to start from '
        'scratch, set `@misc = "spacy-elmo.RandomLoader.v1"` in '
        "[initialize.components.elmo.loader] and call `nlp.initialize()`."
    )
    EL030 = "There is no '{path}'. Give the path of a folder with weights, or of two files."
    EL031 = (
        "'{path}' is no checkpoint in a known format, expected a folder with config.json and "
        "model.safetensors, or with options.json and one .hdf5 file, or the paths of these "
        "two files."
    )
    EL032 = "'{path}' does not describe the shape of a biLM: {error}. Is it the right file?"
    EL033 = (
        "The weights in '{path}' cannot be read: {error}. The file is damaged, cut off, or "
        "in another format; get it once more."
    )
    EL034 = (
        "'{path}' exists and is no checkpoint of ours, so it is not replaced. Give another "
        "path or remove it."
    )
    EL035 = (
        "'{path}' should hold one .hdf5 file of weights besides the softmax, found: {found}. "
        "Give the paths of options.json and of the weights."
    )
    EL036 = "The options in '{source}' are not those of a biLM: {problem}. Is it the right file?"
    EL037 = (
        "The options in '{source}' have no char_cnn: the model reads word ids, which is not "
        "supported. Use a model that was trained with characters."
    )
    EL038 = (
        "Reading '{path}' needs the package h5py. Install it with "
        '`pip install "spacy-elmo[allennlp]"`.'
    )
    # Docs
    EL040 = (
        "A doc ('{text}') has no sentence starts, but spacy-elmo.sentence_spans.v1 cuts at "
        "sentences. Add a sentencizer or senter before elmo (in training also to [training] "
        "annotating_components), or use spacy-elmo.window_spans.v1."
    )
    EL050 = (
        "The tokens of a doc ('{text}') were changed after elmo ran, so its vectors do not "
        'belong to them. Run elmo once more: `doc = nlp.get_pipe("elmo")(doc)`.'
    )
    EL051 = (
        "A doc ('{text}') has no ELMo vectors. Run a pipeline with the component elmo over "
        'it, such as `nlp.add_pipe("elmo")` before `nlp(text)`.'
    )
    EL052 = (
        "The layers of '{name}' were not kept with the doc. Set `store_layers = true` in "
        "[components.{name}] or pass "
        '`nlp.add_pipe("elmo", config={{"store_layers": True}})`.'
    )
    EL053 = "There is no token '{word}' in '{text}'. Give a word as it is written there."
    # Presets
    EL060 = "There is no preset '{preset}', only: {presets}."
    EL061 = (
        "The component '{name}' has no model with a tok2vec, so ELMo cannot be put into it. "
        "Name trainable factories, such as tagger, parser or ner; add others to the config "
        "by hand."
    )
    EL062 = (
        'Drawing needs the package matplotlib. Install it with `pip install "spacy-elmo[plot]"`.'
    )


class Warnings(metaclass=ErrorsWithCodes):
    WL001 = (
        "'{between}' comes between '{upstream}' and '{name}', whose spacy.Tok2VecListener.v1 "
        "will read the doc.tensor of '{between}' instead. Put '{between}' before "
        "'{upstream}', or use spacy-elmo.ElmoListener.v1, which reads doc._.elmo."
    )
    WL002 = (
        "'{name}' listens to upstream '*', which {upstreams} all claim; only the last one "
        "would be trained. Name one of them as its `upstream`."
    )
    WL003 = (
        "{n_words} distinct words of this batch are longer than {n_bytes} bytes; what is "
        "beyond was not read, here and from now on. That is how the biLM was trained; it "
        "matters only if there are many."
    )
