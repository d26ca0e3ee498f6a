"""Registries that other packages can add to through entry points."""

import catalogue

# Group "spacy_elmo_checkpoint_readers": objects of type
# `spacy_elmo.checkpoints.formats.CheckpointReader`, asked in the order of their names.
checkpoint_readers = catalogue.create("spacy_elmo", "checkpoint_readers", entry_points=True)

# Group "spacy_elmo_models": callables `() -> Path` to a folder with weights, by the name that
# stands for it wherever a folder with weights may be given.
models = catalogue.create("spacy_elmo", "models", entry_points=True)

# Group "spacy_elmo_softmaxes": callables `(width, n_words, **settings) -> nn.Module` with
# `loss` and `log_probs` as `spacy_elmo.language_model.softmax.Softmax`, by the name that a
# config gives. Those from a file are made on torch's meta device first, for their shapes.
softmaxes = catalogue.create("spacy_elmo", "softmaxes", entry_points=True)

# Group "spacy_elmo_teachers": callables `(context, **settings) -> Teacher` as in
# `spacy_elmo.pretraining.teachers`, by the kind that a config gives; `Teacher` is in
# `spacy_elmo.language_model.objective`.
teachers = catalogue.create("spacy_elmo", "teachers", entry_points=True)

# Group "spacy_elmo_corpus_readers": callables `(path, offset) -> Iterator[(text, offset)]`
# as in `spacy_elmo.text.formats`, by the ending of the file's name without the dot.
corpus_readers = catalogue.create("spacy_elmo", "corpus_readers", entry_points=True)

# Group "spacy_elmo_task_readers": callables `(nlp, path, *, option=default) -> Iterator[Doc]`,
# by the name that `python -m spacy elmo convert-data` takes. Options are bool, int or str, and
# become options of the command: `joined: bool = False` is `--joined`.
task_readers = catalogue.create("spacy_elmo", "task_readers", entry_points=True)
