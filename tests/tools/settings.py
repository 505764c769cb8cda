#!/usr/bin/env python3
"""Writes the tables of settings in docs/configuration.md and docs/man/buscapd.conf.5 from `buscapd --list-settings`.

    settings.py PROGRAM            update both documents
    settings.py --check PROGRAM    name the documents that differ, and exit with 1

A document has, for each section, two comments around its table: "settings: SECTION" and "end of settings". The section
of the simulated bus is "sim".
"""

import pathlib
import re
import subprocess
import sys
import textwrap
import typing

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


class Setting(typing.NamedTuple):
    section: str
    key: str
    metavar: str
    meaning: str
    default: str  # "none": there is none
    sighup: str  # "yes", "no", "next recording"; empty: not a setting of the configuration file
    option: str


def settings(program):
    """All settings, in the order of the program's table."""
    text = subprocess.run([program, "--list-settings"], check=True, capture_output=True, text=True).stdout
    found = []
    for paragraph in text.strip().split("\n\n"):
        name, _, rest = paragraph.partition("\n")
        section, key, metavar = re.fullmatch(r"([^.:]+)[.:](.+?)=(.+)", name).groups()
        facts = re.fullmatch(r"(.*) Default: (.*?)\.(?: Changes at SIGHUP: (.*?)\.)?(?: Option: (.*))?", " ".join(rest.split()))
        found.append(Setting(section, key, metavar, *(fact or "" for fact in facts.groups())))
    return found


def code(text):
    return f"`{text}`" if text else ""


def markdown(rows):
    """A table without the columns that would be empty."""
    columns = {"key": [code(row.key) for row in rows],
               "default": ["" if row.default == "none" else row.default if " " in row.default else code(row.default)
                           for row in rows],
               "meaning": [row.meaning for row in rows],
               "option": [", ".join(map(code, row.option.split(", "))) for row in rows],
               "SIGHUP": [row.sighup for row in rows]}
    columns = {head: cells for head, cells in columns.items() if any(cells)}
    lines = [columns.keys(), ["---"] * len(columns), *zip(*columns.values())]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def mdoc_text(text):
    """Each sentence on lines of its own, with .Ql for what is in backquotes."""
    lines = []
    for sentence in re.split(r"(?<=[.?!]) (?=[A-Z0-9`])", text):
        parts = sentence.split("`")
        for at in range(1, len(parts), 2):
            # Punctuation that touches the quotes belongs on the line of the macro.
            opening = "(" if parts[at - 1].endswith("(") else ""
            closing = re.match(r"[.,:;)]*", parts[at + 1]).group()
            words = ["\\&" + word if word in list(".,:;()[]?!|") else word for word in parts[at].split()]
            parts[at - 1] = parts[at - 1].removesuffix(opening)
            parts[at] = " ".join([".Ql", *opening, *words, *closing])
            parts[at + 1] = parts[at + 1].removeprefix(closing)
        for part in parts:
            lines += [part] if part.startswith(".Ql ") else textwrap.wrap(part.strip(), 78)
    return lines


def mdoc(rows):
    lines = [".Bl -tag -width Ds"]
    for row in rows:
        key, name = re.fullmatch(r"(.*?)([A-Z]*)", row.key).groups()
        if row.section == "sim":
            head = f"{key}= Ns Ar {row.metavar}"
        elif name:
            head = f"{key}\\& Ns Ar {name} No = Ar {row.metavar}"
        else:
            head = f"{key} = Ar {row.metavar}"
        lines += [f".It Cm {head}", *mdoc_text(row.meaning), ".Pp", *mdoc_text(f"Default: {row.default}.")]
        if row.sighup:
            lines.append(f"SIGHUP: {row.sighup}.")
    return [*lines, ".El"]


# Of each document: how a comment looks, and what writes a table.
DOCUMENTS = {"configuration.md": ("<!-- {} -->", markdown), "man/buscapd.conf.5": ('.\\" {}', mdoc)}


def generate(text, comment, write, found):
    """The text of a document with new tables. Every section must have a table, and every table a section."""
    sections = {}
    for row in found:
        sections.setdefault(row.section, []).append(row)

    def table(match):
        return match[1] + "".join(line + "\n" for line in write(sections.pop(match[2]))) + match[3]

    begin, end = (re.escape(comment.format(words)) for words in ("settings: SECTION", "end of settings"))
    try:
        text = re.sub(f"({begin}\n)(?:.*\n)*?({end}\n)".replace("SECTION", "(.*)"), table, text)
    except KeyError as section:
        sys.exit(f"settings.py: a document has a table for {section}, which is not a section")
    if sections:
        sys.exit(f"settings.py: a document has no table for {', '.join(sections)}")
    return text


def outdated(program):
    """The documents that differ from the program: {path: what it should be}."""
    found = settings(program)
    texts = {DOCS / name: generate((DOCS / name).read_text(), *how, found) for name, how in DOCUMENTS.items()}
    return {path: text for path, text in texts.items() if text != path.read_text()}


def main(*argv):
    is_check = argv[0] == "--check"
    changed = outdated(argv[-1])
    for path, text in changed.items():
        print(f"{path.relative_to(DOCS.parent)}: {'outdated; run make docs' if is_check else 'updated'}")
        if not is_check:
            path.write_text(text)
    return 1 if is_check and changed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
