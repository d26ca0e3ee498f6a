"""Raw text to sequences of words: files, formats, encodings, order of reading, tokenizer, worker
processes."""
