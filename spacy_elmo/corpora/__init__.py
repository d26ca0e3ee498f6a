"""Files of text -> sequences of words, streamed in bounded memory."""
