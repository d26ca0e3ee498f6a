"""A spaCy pipeline over HTTP: requests that come together are read together."""
