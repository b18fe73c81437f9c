"""Completion scripts for three shells, all with the same logic.

From the words before the cursor they find the place, the longest path of sub-commands. After a flag that takes a value
they offer its choices or files; otherwise flags if a dash is typed, else sub-commands, choices or files.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

BASH = """\
_pysimt_sac() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
    local place=${{COMP_WORDS[0]##*/}} word found=
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$place $word" in {places}) place="$place $word" ;; esac
    done
    COMPREPLY=()
    case "$place $before" in
{values}
    esac
    if [[ $current == -* ]]; then
        case $place in
{flags}
        esac
    else
        case $place in
{words}
        esac
    fi
    COMPREPLY=($(compgen -W "$found" -- "$current"))
}}
complete -o default -F _pysimt_sac {programs}
"""
ZSH = """\
#compdef {programs}
_pysimt_sac() {{
    local place=${{words[1]:t}} before=${{words[CURRENT-1]}} word
    local -a found
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        case "$place $word" in ({places}) place="$place $word" ;; esac
    done
    case "$place $before" in
{values}
    esac
    if [[ $PREFIX == -* ]]; then
        case $place in
{flags}
        esac
        _describe -o option found
    else
        case $place in
{words}
        esac
        if (( $#found )); then _describe word found; else _files; fi
    fi
}}
if [[ $funcstack[1] == _pysimt-sac ]]; then _pysimt_sac "$@"; else compdef _pysimt_sac {programs}; fi
"""
FISH = """\
set -g __pysimt_sac_places {places}
function __pysimt_sac_at
    set -l words (commandline -opc)
    set -l place (string replace -r '.*/' '' -- $words[1])
    for word in $words[2..-1]
        contains -- "$place $word" $__pysimt_sac_places; and set place "$place $word"
    end
    test "$place" = "$argv[1]"
end
{lines}
"""


@dataclass
class Flag:
    """An option: its spellings, its help, whether it takes a value, and the choices if there are any."""

    names: list[str]
    help: str
    takes_value: bool
    choices: list[str]


@dataclass
class Place:
    """A position on the command line, such as `pysimt-sac rank score`, and what may follow it."""

    path: str
    commands: dict[str, str] = field(default_factory=dict)
    flags: list[Flag] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)


def bash(places: Sequence[Place]) -> str:
    """Return the script for bash."""
    values, flags, words = [], [], []
    for place in places:
        for flag in place.flags:
            if flag.takes_value:
                found = f'COMPREPLY=($(compgen -W {shlex.quote(" ".join(flag.choices))} -- "$current")); '
                values.append(f"{patterns(place, flag.names)} {found if flag.choices else ''}return ;;")
        names = " ".join(name for flag in place.flags for name in flag.names)
        flags.append(f"{shlex.quote(place.path)}) found={shlex.quote(names)} ;;")
        if followers := [*place.commands, *place.choices]:
            words.append(f"{shlex.quote(place.path)}) found={shlex.quote(' '.join(followers))} ;;")
    return BASH.format(
        places=paths(places),
        programs=programs(places),
        values=indented(values, 8),
        flags=indented(flags, 12),
        words=indented(words, 12),
    )


def zsh(places: Sequence[Place]) -> str:
    """Return the script for zsh, with help texts."""
    values, flags, words = [], [], []
    for place in places:
        for flag in place.flags:
            if flag.takes_value:
                found = f"compadd -- {shlex.join(flag.choices)}" if flag.choices else "_files"
                values.append(f"({patterns(place, flag.names)} {found}; return ;;")
        helps = {name: flag.help for flag in place.flags for name in flag.names}
        flags.append(f"({shlex.quote(place.path)}) found=({described(helps)}) ;;")
        followers = {**place.commands, **dict.fromkeys(place.choices, "")}
        if followers:
            words.append(f"({shlex.quote(place.path)}) found=({described(followers)}) ;;")
    return ZSH.format(
        places=paths(places),
        programs=programs(places),
        values=indented(values, 8),
        flags=indented(flags, 12),
        words=indented(words, 12),
    )


def fish(places: Sequence[Place]) -> str:
    """Return the script for fish, with help texts."""
    lines = []
    for place in places:
        condition = fish_quoted(f"__pysimt_sac_at {fish_quoted(place.path)}")
        start = f"complete -c {place.path.split()[0]} -n {condition}"
        for flag in place.flags:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
            value = f" -x -a {fish_quoted(' '.join(flag.choices))}" if flag.choices else " -r" * flag.takes_value
            lines.append(f"{start} {names}{value} -d {fish_quoted(flag.help)}")
        for word, text in {**place.commands, **dict.fromkeys(place.choices, "")}.items():
            lines.append(f"{start} -f -a {word} -d {fish_quoted(text)}")
    return FISH.format(places=" ".join(fish_quoted(place.path) for place in places), lines="\n".join(lines))


SHELLS: dict[str, Callable[[Sequence[Place]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}


def programs(places: Sequence[Place]) -> str:
    """Return the names of the programs."""
    return " ".join(place.path for place in places if " " not in place.path)


def paths(places: Sequence[Place]) -> str:
    """Return a `case` pattern that matches all places."""
    return "|".join(shlex.quote(place.path) for place in places)


def patterns(place: Place, names: Sequence[str]) -> str:
    """Return a `case` pattern for flags of a place, with its closing bracket."""
    return "|".join(shlex.quote(f"{place.path} {name}") for name in names) + ")"


def described(helps: dict[str, str]) -> str:
    """Return words with their help texts in the format of zsh's `_describe`."""
    return " ".join(shlex.quote(f"{word}:{text}" if text else word) for word, text in helps.items())


def fish_quoted(text: str) -> str:
    """Quote text in single quotes, in which fish knows two escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def indented(lines: Sequence[str], depth: int) -> str:
    """Indent lines."""
    return "\n".join(" " * depth + line for line in lines)
