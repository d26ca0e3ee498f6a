"""What a pipeline says of a text, for people to look at: sections of `elmo tasks`, and the local
web page of `elmo explore`."""
