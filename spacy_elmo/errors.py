"""All messages with a code. Each says what happened, what was expected, and what to do next.

Codes are never reused. Messages of the command line are in `cli/`.
"""

from spacy.errors import ErrorsWithCodes


class Errors(metaclass=ErrorsWithCodes):
    # biLM and inference
    EL010 = "{key} = {value} is not possible for a biLM, expected {expected}."
    EL013 = (
        "{place} is {found}, expected {expected}. Give a list of lists of words, such as "
        '[["I", "like", "eggs"]].'
    )
    EL014 = (
        "The state is {found}, expected a state of the biLM {config}. Pass a state that "
        "embed_stateful of the same biLM returned, or None to start at zero."
    )
    EL016 = 'The {device} of this machine cannot compute with precision = "{value}", only: {known}.'
    EL020 = (
        "The weights in {source} are not those of this model. Missing: {missing}. "
        "Unexpected: {unexpected}. Check that options and weights belong together."
    )
    EL021 = (
        "'{name}' in {source} has {text}. Check that this is a file of weights, and that options "
        "and weights belong together."
    )
    EL106 = (
        "'{name}' in {source} is damaged: {problem}. Download or copy the file again; if training "
        "went wrong before it was written, use another file."
    )
    # Weights
    EL023 = (
        "The weights in {path} have another shape than the component. Configured and found: "
        "{differences}. Set the found values in [components.elmo.model], or write the whole config "
        "with `python -m spacy elmo init-config config.cfg --weights {path}`. To start from random "
        'weights, set `@misc = "spacy-elmo.RandomLoader.v1"` in '
        "[initialize.components.elmo.loader] and call `nlp.initialize()`."
    )
    EL030 = (
        "There is no '{path}'. Give the path of a folder with weights or of two files, or the "
        "name of an installed model: {known}. Nothing is downloaded, so an address is no path."
    )
    EL031 = (
        "'{path}' is not a checkpoint in a known format, expected a folder with config.json and "
        "model.safetensors, or with options.json and one .hdf5 file, or the paths of these two "
        "files, or a saved pipeline with a component elmo. Unpack an archive first."
    )
    EL034 = (
        "'{path}' exists and is not a checkpoint of spacy-elmo, so it is not replaced. Give "
        "another path, or remove it yourself."
    )
    EL038 = (
        "{purpose} needs the package {package}. Install it with "
        '`pip install "spacy-elmo[{extra}]"`.'
    )
    EL039 = (
        "The AllenNLP format cannot hold these weights: {problem}. It can hold biLMs that read "
        "characters and have at least as many cells as outputs, and one softmax row for each word."
    )
    EL189 = (
        "The installed model '{name}' cannot be loaded: {problem}. Install its package again, or "
        "give the folder of the model."
    )
    EL340 = (
        "The weights are not those of the installed model '{name}', which `installed_weights` in "
        "[components.elmo] names. To load a pipeline, install the version of the model that it was "
        "trained with; to save other weights, set `installed_weights = null`."
    )
    # Files and text
    EL012 = "{key} = {value!r} is not possible, expected {expected}."
    EL080 = "There is no text in '{path}'. Give a file, folder or glob of {known} files."
    EL081 = "The format of '{path}' is not known. Give {known}, each also as .gz, .xz or .zst."
    EL089 = (
        "The tokenizer of the language '{lang}' cannot be made: {error}. spaCy's rule-based one "
        'needs no package: set `@tokenizers = "spacy.Tokenizer.v1"` in [nlp.tokenizer].'
    )
    EL100 = "There is no file '{path}'{found}. Check the path."
    EL103 = (
        "'{path}' cannot be read: {error}. The file is damaged, cut off or of another kind, or you "
        "have no permission to read it."
    )
    EL104 = (
        "'{path}' is damaged: its digest differs from the one in '{digests}'. Copy or download the "
        "whole folder again; if you changed the file on purpose, remove its digests.json."
    )
    EL143 = "Another process is writing to '{path}'. Wait until it ends, or give another folder."
    EL155 = (
        "'{path}' is not text in UTF-8: its byte {byte}, in line {line}, is {found}. It looks "
        "like {guess}. {remedy}."
    )
    EL161 = "spaCy has no language '{lang}', only: {known}. For any other language, take 'xx'."
    EL197 = "Line {line} of '{path}' cannot be read: {problem}."
    EL328 = (
        "A process that cuts text ended. If the system killed it because memory ran out: "
        "checkpoints are kept, so start the same command again with `--resume` and with fewer "
        "processes (`--corpus.n_workers`). Otherwise, read what it printed. A script that starts "
        'processes needs the line `if __name__ == "__main__":`, or n_workers = 0 in [corpus].'
    )
    # Components
    EL001 = (
        "Component '{name}' listens for vectors of width {found}, but '{upstream}' sends "
        "{expected}. In the block of the listener, set {hint}. If '{name}' was trained with "
        "another '{upstream}', add that component, too: `nlp.add_pipe(..., source=...)`."
    )
    EL002 = (
        "spacy-elmo.ElmoListener.v2 cannot listen to upstream '*', which any tok2vec "
        'component would match. Name the component, such as `upstream = "elmo"`.'
    )
    EL003 = (
        "A component is trained on docs on which '{upstream}' has not run. If '{upstream}' is in "
        "[training] frozen_components, add it to [training] annotating_components; otherwise put a "
        "component '{upstream}' (factory \"elmo\") first in [nlp] pipeline. In your own training "
        "loop, enable '{upstream}', too: `nlp.select_pipes(enable=[\"{upstream}\", ...])`. "
        "`nlp.rehearse` does not run '{upstream}', so you cannot use it here."
    )
    EL005 = (
        "spacy-elmo.ElmoTok2Vec has no input. Add one of the blocks `embed`, `input` and "
        "`vectors`; spacy-elmo.ElmoTok2Vec.v1 needs `input` or `output`, with "
        '`@architectures = "spacy-elmo.ElmoListener.v2"`.'
    )
    EL006 = (
        "The model of the component '{name}' has the layers {found}, expected elmo_layers "
        'and scalar_mix. Set `@architectures = "spacy-elmo.Elmo.v2"` in '
        "[components.{name}.model]."
    )
    EL018 = (
        "'{name}' is trained, so its layers change and cannot be cached. Remove "
        "[initialize.components.{name}.activation_cache], or set `frozen = true` in "
        "[components.{name}.model]."
    )
    EL040 = (
        "A doc ('{text}') has no sentence starts, but spacy-elmo.sentence_spans.v1 cuts at "
        "sentences. Add a sentencizer or senter before elmo (in training also to [training] "
        "annotating_components), or use spacy-elmo.window_spans.v1."
    )
    EL050 = (
        "Tokens of a doc ('{text}') were merged or split after '{name}' ran, so its results do not "
        "belong to the new tokens. Run '{name}' again: `doc = nlp.get_pipe(\"{name}\")(doc)`."
    )
    EL051 = (
        "A doc ('{text}') has no vectors of '{name}' (vectors it has: {known}). Run a pipeline "
        'with this component on the doc, such as `nlp.add_pipe("elmo")` before `nlp(text)`. After '
        '`Span.as_doc`, run the component again: `nlp.get_pipe("{name}")(doc)`. If the component '
        "has another name, set `upstream` to that name."
    )
    EL052 = (
        "The layers of '{name}' were not kept with the doc. Set `store_layers = true` in "
        "[components.{name}] or pass "
        '`nlp.add_pipe("elmo", config={{"store_layers": True}})`.'
    )
    EL054 = (
        "The doc '{text}' has no scores of a language model. Add the component elmo_lm to the "
        "pipeline."
    )
    EL055 = (
        "There are no substitutes for a token of '{text}': the component elmo_lm was deleted, has "
        "other weights now, or has `substitutes = false`. Run an elmo_lm with `substitutes = true` "
        "on the doc."
    )
    EL059 = (
        "The component '{name}' has no senses. Train them with `python -m spacy elmo "
        "train-senses` and load the pipeline that it writes, or take the component from it: "
        '`nlp.add_pipe("elmo_senses", source=spacy.load(FOLDER))`.'
    )
    EL063 = (
        "The pipeline has no mix of biLM layers; its components are {names}. Load a pipeline with "
        "the component elmo."
    )
    EL115 = (
        "A component listens to '{upstream}' for rows of width {expected}, but a doc ('{text}') "
        "has rows of {found}, from another component or other weights. Let '{upstream}' run last "
        "before the listening component, with the weights that this one was trained on."
    )
    EL171 = (
        "The pipeline '{path}' cannot be loaded: {error}. Give the folder or the package of a "
        "trained pipeline."
    )
    EL186 = (
        "'{name}' reads static vectors (`spacy-elmo.StaticVectors.v1` or `include_static_vectors = "
        "true`), but the pipeline has none. For training, set [paths] vectors, such as "
        "`--paths.vectors en_core_web_md`, or use the preset word_features. A trained component "
        "needs the vectors that it was trained with: `nlp.vocab.vectors = "
        'spacy.load("en_core_web_md").vocab.vectors`.'
    )
    EL314 = (
        "'{path}' should hold the weights of one component of the factory \"elmo\". The pipeline "
        "has these: {names}. Give the folder of one of them."
    )
    EL325 = (
        "There is no GPU {gpu_id}: spaCy can use {n_gpus} of them, counted from 0. To use the CPU, "
        "leave the option out; or install torch with CUDA and spaCy's extra for CuPy, such as `pip "
        "install spacy[cuda12x]`."
    )
    EL327 = (
        "'{first}' and '{second}' need different readers for their corpora. Write a config for "
        "each, train them separately, and join them: `nlp.add_pipe(NAME, source=other)`."
    )
    EL339 = (
        "Component '{name}' listens to '{upstream}', which comes after it. Put '{upstream}' "
        "before '{name}' in [nlp] pipeline."
    )
    # Language model and pretraining
    EL071 = (
        "The list of words starts with {found}. A vocabulary has <S>, </S>, <UNK>, then each word "
        "once. Give the vocab.txt of a model."
    )
    EL073 = "[training.softmax] is not possible: {problem}."
    EL074 = (
        "'{path}' has no softmax, so it cannot predict words. Give a folder with "
        "softmax.safetensors and vocab.txt, or with an AllenNLP softmax file (.hdf5) and "
        "vocab.txt."
    )
    EL075 = (
        "Some words to score with are not in the vocabulary of the softmax. Missing: {n_words}, "
        "such as {examples}. Give a file whose words are all in that vocabulary."
    )
    EL077 = (
        "No word is left to predict in {source}: the most frequent word has a count of {most}, and "
        "[corpus] has min_count = {min_count} and size = {size} (<S>, </S> and <UNK> take three of "
        "these). Lower min_count, raise size, or give a vocabulary with words."
    )
    EL090 = "[{section}] has no '{key}'. Its settings are: {known}."
    EL091 = "[{section}] {key} = {value} is not possible, expected {expected}."
    EL093 = (
        "Training diverged, up to step {step}: {problem}. The last checkpoint is unchanged: resume "
        "from it with `--resume` and a lower `--training.learn_rate` or `--training.clip`."
    )
    EL095 = (
        "'{path}' already holds a run, or a vocab.txt that belongs to something else. Resume the "
        "run with `--resume`, or give an empty folder."
    )
    EL096 = (
        "No checkpoint in '{path}' can be resumed from; see the warnings above. Restore a "
        "checkpoint, undo your changes to the config, or start in another folder; `--paths.init "
        "FOLDER` starts from weights alone."
    )
    EL097 = (
        "The weights in '{path}' have another shape than [bilm]. Configured and found: "
        "{differences}. Set the found values in [bilm]."
    )
    EL098 = "'{path}' is not a pretraining config: {error}. Its sections are {known}."
    EL181 = "A teacher of kind '{kind}' in [training.teachers] is not possible: {problem}."
    EL184 = (
        "There is no transformer to learn from in '{path}': {problem}. Give the folder of a "
        "Hugging Face encoder with config.json, model.safetensors and tokenizer.json."
    )
    # Tasks
    EL190 = (
        "The model of the component has no weights. Train it with `nlp.initialize(...)`, or load a "
        "trained pipeline with `spacy.load(...)`."
    )
    EL193 = "{label!r} cannot be a label of the component '{name}': {problem}. Rename it."
    EL194 = (
        "The component '{name}' cannot learn from its training data ({problem}). It needs {needed}."
    )
    EL195 = (
        "The doc '{text}' is not a pair of texts. Each of its two span groups needs one span, "
        "found: {counts}. Make pairs with `make_pair(nlp, first, second)` of the component."
    )
    EL196 = "The gold spans of the doc '{text}' cannot be used: {problem}. {fix}."
    EL198 = (
        "The labels of the component '{name}' are {labels}, but {problem}. Initialize a new "
        "component with data that has all labels, or list them in "
        "[initialize.components.{name}] labels, with nO = null in its model."
    )
    EL199 = (
        "The doc '{text}' has a gold label, but no pair of texts to predict it from: spaCy's own "
        'corpus reader leaves out spans. In [corpora], set `@readers = "spacy-elmo.SpanCorpus.v1"` '
        "with `groups = {names}`."
    )
    EL200 = (
        "The group '{group}' of the doc '{text}' has {n} spans labelled 'V', expected one: the "
        "predicate, of at least one token. Give each predicate a separate group with its "
        "arguments."
    )
    EL202 = (
        "The doc '{text}' has no group '{group}', which predicates = \"given\" expects. Set "
        'doc.spans["{group}"], which may be empty; for a corpus, use spacy-elmo.SpanCorpus.v1 with '
        'groups = ["{group}"]. Or set predicates = "predicted".'
    )
    EL223 = (
        "'{path}' is not in SQuAD's format: {problem}. Expected JSON such as "
        '{{"data": [{{"title": "", "paragraphs": [{{"context": "", "qas": [...]}}]}}]}}.'
    )
    EL227 = (
        "The component '{name}' has set no result: the pipeline runs {known}. Pass the `nlp` that "
        "has the component; enable it if it is disabled; and disable others of its kind."
    )
    EL318 = (
        "The cats of the pair '{text}' do not determine its label: {cats}. Give one of them 1.0 "
        "and the others 0.0; if the pair has no gold label, give all of them 0.0. If some belong "
        "to another component, such as a `textcat`, list the labels of each in "
        "[initialize.components]."
    )
    # Embed, search, senses
    EL043 = "There is no index in '{path}'. Make one with `python -m spacy elmo index TEXT {path}`."
    EL058 = (
        "The training data has too few docs ({n_docs}), or too few senses in them. At least 10 "
        'docs are needed, since a tenth of them chooses the layer. Say in "id" which doc each '
        'sentence belongs to, or leave "id" out: then each sentence is a doc.'
    )
    EL117 = (
        "The senses were trained on layer {layer} of width {expected}; the component upstream has "
        "{n_layers} layers of width {width}. Load the weights that they were trained on, or "
        "train senses with these: `python -m spacy elmo train-senses ... --weights FOLDER`."
    )
    EL140 = (
        "The index in '{path}' cannot be used: {problem}. Remove the folder and make it again with "
        "`python -m spacy elmo index TEXT {path}`."
    )
    EL141 = "'{path}' contains other files, such as {examples}. Give a new or an empty folder."
    EL242 = (
        "The pipeline '{pipeline}' needs one component of the factory elmo; it has: {known}. "
        "Choose one with `--component`, or give another pipeline."
    )
    EL243 = "'{path}' contains {state} vectors. Add `--resume` to continue, or give another folder."
    EL245 = (
        "The job in '{path}' cannot be resumed: {problem}. Repeat the command that started it, or "
        "give another folder."
    )
    EL247 = (
        "The vectors in '{path}' cannot be used: {problem}. Make them with `python -m spacy elmo "
        "embed TEXT FOLDER --unit sentences --layers 0`, or finish them with `--resume`."
    )
    EL248 = "Nothing was embedded: {reason}. Check the input and the pipeline."
    EL249 = (
        "layers = '{value}' is not possible. Give mix, or layers from 0 (the word layer) to {top}, "
        "each once, or both, such as `--layers mix,0`."
    )
    EL251 = (
        "A process was killed, perhaps because the memory was full. Finished work is kept. "
        "{remedy}."
    )
    EL297 = (
        "The pipeline failed with each of {n} records: {error}. Repair the pipeline or its device, "
        "then repeat the command with `--resume`."
    )
    # Experiments and explore
    EL057 = "No other sentence of the corpus has {word}. Give more text{hint}."
    EL065 = (
        "'{path}' was made with {key} = {before!r}, not {now!r}. Results of different settings are "
        "not mixed: give the same settings, or another folder."
    )
    EL066 = (
        "'{path}' cannot be read: {error}. Give a folder with train.spacy and dev.spacy, such as "
        "`python -m spacy convert` makes; a test.spacy is used if there is one."
    )
    EL230 = (
        "The config cannot be compared with and without ELMo: {problem}. Give a config whose "
        "[components.{component}.model.tok2vec] is a spacy-elmo.ElmoTok2Vec.v2 with `embed`, as "
        "`elmo init-config --preset word_features` writes it; give weights by `--weights FOLDER`."
    )
    EL270 = (
        "The pipeline '{path}' has no component of ELMo, only {known}. Give a pipeline with elmo "
        "or elmo_lm, or a pipeline that was trained on vectors of elmo."
    )
    EL272 = (
        "The text has {n:,} {unit}, expected 1 to {most:,}. Change the text, or start `elmo "
        "explore` with a larger `{option}`."
    )
    EL282 = (
        "Cannot listen on '{host}', port {port}: {error}. Give another `--port` (`--port 0` finds "
        "a free one) or another `--host`."
    )
    # Command line
    EL145 = (
        "'{path}' cannot be written: {error}. The previous content is kept. If the disk is full, "
        "free some space; otherwise give a path where you may write."
    )
    # Several rooms
    EL032 = "'{path}' does not describe the shape of a biLM: {error}. Check the path."
    EL053 = "There is no token '{word}' in '{text}'. Give a token exactly as the sentence has it."
    EL060 = "There is no preset '{preset}'. Choose one of: {presets}."
    EL061 = (
        "The component '{name}' has no model with a tok2vec, so ELMo cannot be put into it. "
        "Name trainable factories, such as tagger, parser or ner; add others to the config "
        "by hand."
    )
    EL087 = (
        "There are no static vectors in '{path}': {problem}. Give the folder of a pipeline "
        "with vectors, as `python -m spacy init vectors` writes it."
    )
    EL094 = "There is no text in {path}. Check that it is the right source and not empty."
    EL112 = (
        "The softmax in '{path}' cannot be made: {problem}. If its kind comes from another "
        "package, install that package; if not, download or copy the file again."
    )
    EL116 = (
        "The bytes of {source} cannot be read: {error}. They are damaged, cut off, or belong to "
        "another component or config. Load them with the config that they were saved with, and do "
        "not override shapes; or write and send them again."
    )


class Warnings(metaclass=ErrorsWithCodes):
    # biLM and inference
    WL003 = (
        "{n_words:,} of {n_all:,} words are cut to {n_bytes} bytes, the most that the biLM reads. "
        "Check that the tokenizer finds the words of this language. Later words are not reported."
    )
    WL007 = (
        "Layers cannot be kept in '{path}' ({error}); training continues without them. If the file "
        "is damaged, delete it."
    )
    WL043 = (
        "The activation cache in {place} is full ({megabytes} MB): the layers of all other texts "
        "are computed again in each epoch. Raise `megabytes` in "
        "[initialize.components.elmo.activation_cache], or give each set of texts its own cache."
    )
    # Files and text
    WL009 = (
        "No font on this machine has all the letters of {path}, so boxes replace some of them. "
        "Install a font that has them, such as Noto Sans CJK."
    )
    WL011 = (
        "'{path}' holds text that an earlier run read from a pipe. This file is used, and the pipe "
        "is not read. To train on another text, give another folder or delete the file."
    )
    WL012 = (
        "Left out in '{path}': {n_files}, such as {examples}, of another format than {known}. If "
        "they are text, rename them."
    )
    # Components
    WL001 = (
        "'{between}' comes between '{upstream}' and '{name}', whose spacy.Tok2VecListener.v1 "
        "will read the doc.tensor of '{between}' instead. Put '{between}' before "
        "'{upstream}', or use spacy-elmo.ElmoListener.v2, which reads doc._.elmo."
    )
    WL002 = (
        "'{name}' listens to upstream '*', which {upstreams} all match; only the last one "
        "would be trained. Set `upstream` to one of them."
    )
    WL016 = (
        "A component listens to '{upstream}', but the doc '{text}' has no vectors or layers of it "
        "(vectors it has: {known}): the component gets zeros for every token, and this warning is "
        "not repeated. If '{upstream}' is disabled: `nlp.enable_pipe(\"{upstream}\")`. If it is "
        'missing or comes after the component, add it in front: `nlp.add_pipe("{upstream}", '
        "source=OTHER, first=True)`. If it has another name, set `upstream` in the listener's "
        "block. If the doc comes from another pipeline, set `store_layers = true` there. In "
        "training, add '{upstream}' to `annotating_components`."
    )
    WL018 = (
        "The weights of '{name}' were trained on the language '{weights}', but the docs are in "
        "'{docs}': expect poor vectors. Load other weights, {how}, or train them with `python -m "
        "spacy elmo pretrain`."
    )
    WL060 = (
        "{kind}._.{name} was registered by another package and is not replaced, so you cannot read "
        "the results of spacy-elmo from it. Import the other package later, or remove its "
        "attribute ({kind}.remove_extension)."
    )
    WL061 = (
        "A word contains a space, perhaps since a component merged tokens: biLMs are rarely "
        "trained on such words, and the vector will be poor. Put components that merge tokens "
        "after elmo."
    )
    WL066 = "Disabled, since they would merge or split tokens that were already read: {names}."
    # Language model and pretraining
    WL004 = "The checkpoint {folder} is not used: {problem}. The checkpoint before it is tried."
    WL005 = "Step {step} is skipped: the norm of the gradient is {norm}."
    WL006 = (
        "There are more than {max_types} distinct words: those with a "
        "count of at most {n_times} were dropped while counting."
    )
    WL028 = (
        "The learning rate rises for {warmup_steps} steps ([training] warmup_steps), but the run "
        "has only {total_steps}, so the rate reaches only {share:.0%} of learn_rate. Train longer, "
        "lower warmup_steps, or lower batch_tokens for more steps."
    )
    WL029 = (
        "The text has {n_targets} tokens and ends of sequences, fewer than the {batch_tokens} of "
        "one step ([training] batch_tokens): each step reads the same text, more than once. "
        "Lower batch_tokens, or give more text."
    )
    WL062 = (
        "The held-out text '{path}' has changed, so its perplexity is not compared with the best "
        "so far. The next perplexity counts as the best; `model-best` is kept until then."
    )
    WL068 = (
        "The transformer of [training.teachers] knows {n_known} of the {n_words} most frequent "
        "words; the others have a piece that it does not know, and are left out. Give a "
        "transformer for the text's language."
    )
    WL070 = (
        "{share} of the tokens are longer than {n_bytes} bytes. The text seems to have no spaces "
        "between words, and a biLM learns nothing from such text. Remove [nlp.tokenizer] from the "
        "config, so that the language's own tokenizer cuts it (it may need a package, see spaCy's "
        "page of the language), or give text whose words are separated."
    )
    # Tasks
    WL034 = "The training data has arguments that {problem}."
    WL037 = (
        "Clusters of one mention in the training data of '{name}': {n_single} of {n}, and "
        "`singletons = {found}`. Set `singletons = {other}` in [components.{name}]."
    )
    WL039 = (
        "Some gold {what} begin or end inside of a token: '{name}' cannot learn them. In "
        '[corpora], set `@readers = "{reader}.'
    )
    WL040 = (
        "The training data of '{name}' has no question without an answer: its probabilities of no "
        "answer will mean nothing. Add such questions, "
        "as `python -m spacy elmo convert-data squad ... --negatives 0.2` makes them."
    )
    WL041 = (
        "Answers of '{path}' that begin or end inside of a token: {n_expanded} (the tokens around "
        "them are learned); answers that are not in their context: {n_absent} (not learned); all "
        "answers: {n_answers}. Scores compare with the texts of the file for all answers."
    )
    WL042 = (
        "The training data of '{name}' has {what} longer than `{setting}`: {n_long} of {n}. They "
        "are not learned. If they are many, raise the setting in [components.{name}]."
    )
