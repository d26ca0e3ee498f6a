"""What makes shells complete `spacy`, and the section of the commands' page about it."""

from typing import Dict

# By shell: Typer's own scripts, but for a program that is not named as its app says.
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

`python -m spacy --install-completion` is Typer's, and does not work: spaCy calls its app
`python -m spacy`, and a shell completes the arguments of a program, which is `python` here. The
script that it installs in Bash is called for every `python` and fails; to remove it, delete
`~/.bash_completions/python -m spacy.sh` and the line that it added to `~/.bashrc`.

What works is completion for `spacy`, the program that spaCy installs, which is the same as
`python -m spacy`. `spacy elmo in`, then Tab, offers `init-config` and `index`. Each Tab starts
Python and imports spaCy, which takes a second or two. Files and folders are completed as usual.

Bash: put this into `~/.bashrc`.

```text
{SCRIPTS["bash"]}
```

zsh: put this into `~/.zshrc`, after the line that calls `compinit` (if there is none:
`autoload -Uz compinit && compinit`).

```text
{SCRIPTS["zsh"]}
```

fish: put this into `~/.config/fish/completions/spacy.fish`.

```text
{SCRIPTS["fish"]}
```"""
