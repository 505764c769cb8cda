#!/usr/bin/env python3
"""Writes the tables of settings in docs/configuration.md from `buscapd --list-settings`.

    tables.py PROGRAM            update the document
    tables.py --check PROGRAM    say if it is outdated; exit code 1 then

In a document, the comments "settings: SECTION" and "end of settings" enclose the table of each section. The section of
the simulated bus is "sim".
"""

import pathlib
import re
import subprocess
import sys
import typing

DOCS = pathlib.Path(__file__).resolve().parent


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


def generate(text, found):
    """Returns the text of a document with new tables. Each section must have a table and vice versa."""
    sections = {}
    for row in found:
        sections.setdefault(row.section, []).append(row)

    def table(match):
        return match[1] + "".join(line + "\n" for line in markdown(sections.pop(match[2]))) + match[3]

    try:
        text = re.sub("(<!-- settings: (.*) -->\n)(?:.*\n)*?(<!-- end of settings -->\n)", table, text)
    except KeyError as section:
        sys.exit(f"tables.py: unknown section {section} in a document")
    if sections:
        sys.exit(f"tables.py: a document has no table for {', '.join(sections)}")
    return text


def outdated(program):
    """Returns the outdated documents: {path: new text}."""
    path = DOCS / "configuration.md"
    text = generate(path.read_text(), settings(program))
    return {} if text == path.read_text() else {path: text}


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
