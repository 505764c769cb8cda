#!/usr/bin/env python3
"""Writes the tables of settings in docs/configuration.md and docs/man/buscapd.conf.5 from `buscapd --list-settings`.

    settings.py PROGRAM            update both documents
    settings.py --check PROGRAM    print outdated documents; exit code 1 if there are any

In a document, the comments "settings: SECTION" and "end of settings" enclose the table of each section. The section of
the simulated bus is "sim".
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
    """Returns all settings in the program's order."""
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
    """Writes a table without empty columns."""
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
    """Starts each sentence on a new line, and uses .Ql for text in backquotes."""
    lines = []
    for sentence in re.split(r"(?<=[.?!]) (?=[A-Z0-9`])", text):
        parts = sentence.split("`")
        for at in range(1, len(parts), 2):
            # Punctuation next to the quotes goes on the line of the macro.
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


# {document: (comment, function that writes a table)}
DOCUMENTS = {"configuration.md": ("<!-- {} -->", markdown), "man/buscapd.conf.5": ('.\\" {}', mdoc)}


def generate(text, comment, write, found):
    """Returns the text of a document with new tables. Each section must have a table and vice versa."""
    sections = {}
    for row in found:
        sections.setdefault(row.section, []).append(row)

    def table(match):
        return match[1] + "".join(line + "\n" for line in write(sections.pop(match[2]))) + match[3]

    start, end = (re.escape(comment.format(words)) for words in ("settings: SECTION", "end of settings"))
    try:
        text = re.sub(f"({start}\n)(?:.*\n)*?({end}\n)".replace("SECTION", "(.*)"), table, text)
    except KeyError as section:
        sys.exit(f"settings.py: unknown section {section} in a document")
    if sections:
        sys.exit(f"settings.py: a document has no table for {', '.join(sections)}")
    return text


def outdated(program):
    """Returns the outdated documents: {path: new text}."""
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
