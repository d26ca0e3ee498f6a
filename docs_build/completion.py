"""Scripts that make shells complete `spacy`, and the section about them."""

from typing import Dict

# By shell: Typer's scripts with the name of the program.
SCRIPTS: Dict[str, str] = {
    "bash": """_spacy() {
  local IFS=$'\\n'
  COMPREPLY=($(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \\
    "_PYTHON _M SPACY_COMPLETE=complete_bash" spacy))
}
complete -o default -F _spacy spacy""",
    "zsh": """_spacy() {
  eval "$(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" \\
    "_PYTHON _M SPACY_COMPLETE=complete_zsh" spacy)"
}
compdef _spacy spacy""",
    "fish": """function _spacy
    env "_PYTHON _M SPACY_COMPLETE=complete_fish" _TYPER_COMPLETE_FISH_ACTION=$argv[1] \\
        _TYPER_COMPLETE_ARGS=(commandline -cp) spacy
end
complete -c spacy --no-files -n "_spacy is-args" -a "(_spacy get-args)\"""",
}
SECTION = f"""## Shell completion

`python -m spacy --install-completion` does not work, since a shell completes the arguments of
`python` there. These scripts complete the program `spacy`, which is the same as `python -m spacy`.
Each Tab imports spaCy, which takes a second.

Bash, in `~/.bashrc`:

```text
{SCRIPTS["bash"]}
```

zsh, in `~/.zshrc`, after `compinit`:

```text
{SCRIPTS["zsh"]}
```

fish, in `~/.config/fish/completions/spacy.fish`:

```text
{SCRIPTS["fish"]}
```"""
