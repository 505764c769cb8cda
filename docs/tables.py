#!/usr/bin/env python3
"""Writes the tables of settings in docs/configuration.md from `buscapd --list-settings`, the members of the status in
docs/api.md and docs/openapi.json from formats/base/figure_rows.h, and Build-Depends in debian/control from mk/packages.mk.

    tables.py PROGRAM            update the documents
    tables.py --check PROGRAM    say which are outdated; exit code 1 then

In a document, the comments "settings: SECTION" and "end of settings" enclose the table of each section. The section of
the simulated bus is "sim". The comments "figures" and "end of figures" enclose the table of figures.
"""

import json
import os
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


class Figure(typing.NamedTuple):
    path: str
    type: str  # as in formats/base/figures.h
    metric: str  # without the prefix; "": none
    label: str  # of the metric; "": none
    states: list
    meaning: str


def figures():
    """Returns the members of the status, in its order."""
    rows = re.split(r"^FIGURE", (DOCS.parent / "formats/base/figure_rows.h").read_text(), flags=re.M)[1:]
    found = []
    for row in rows:
        row = " ".join(row.split())
        path, type_ = re.match(r'\("([^"]+)", (\w+), ', row).groups()
        metric, meaning, rest = re.search(r', (?:"(\w+)"|NULL), "([^"]*)"(.*)\)$', row).groups()
        extra = dict(re.findall(r'(LABEL|STATES)\("([^"]*)"\)', rest))
        found.append(Figure(path, type_, metric or "", extra.get("LABEL", ""), extra.get("STATES", "").split(), meaning))
    return found


def metric_text(row):
    label = {"TEXTS": row.label + ",value"}.get(row.type, row.label) or (f"buscapd_{row.metric}" if row.states else "")
    return code(row.metric + (f"{{{label}}}" if label else "") if label or not row.metric.endswith("_info") else "")


def figures_markdown():
    rows = [["member", "metric", "meaning"], ["---"] * 3]
    rows += [[code(row.path), metric_text(row), row.meaning] for row in figures()]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in rows)


COUNT = {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}
SCHEMAS = {
    "COUNT": COUNT, "COUNTS": {"type": "object", "additionalProperties": COUNT}, "FLAG": {"type": "boolean"},
    "SECONDS": {"type": "number", "minimum": 0}, "TEXT": {"type": "string"},
    "TEXTS": {"$ref": "#/components/schemas/Metadata"}, "TIME": {"type": "string", "format": "date-time"},
}


def schema_lines(path, rows, indent):
    """Returns the lines of the schema of the object at a path."""
    depth = path.count(".") + 1 if path else 0
    members = [row for row in rows if row.path.startswith(path and path + ".") and row.path.count(".") == depth]
    names = [row.path.rpartition(".")[2] for row in members]
    required = [name for name, row in zip(names, members) if not row.type.startswith("PLUGGED")]
    lines = [f'"required": {json.dumps(required)},', '"properties": {']
    for name, row in zip(names, members):
        type_, is_nullable = row.type.removeprefix("PLUGGED_").removesuffix("_OR_NULL"), row.type.endswith("_OR_NULL")
        about = {"description": re.sub(r"\[(.*?)\]\(.*?\)", r"\1", row.meaning.replace("`", ""))}
        if type_ == "OBJECT":
            lines.append(f'  "{name}": {{"type": {json.dumps(["object", "null"] if is_nullable else "object")}, '
                         f'"description": {json.dumps(about["description"])},')
            lines += schema_lines(row.path, rows, "    ")
        else:
            schema = {**SCHEMAS[type_], **({"enum": row.states} if row.states else {})}
            if is_nullable:
                schema["type"] = [schema["type"], "null"]
            lines.append(f'  "{name}": {json.dumps({**schema, **about} if "$ref" not in schema else schema)},')
    lines[-1] = lines[-1].removesuffix(",")
    return [indent + line for line in [*lines, "},", '"additionalProperties": false},']]


def figures_schema():
    lines = schema_lines("", figures(), "        ")
    return "\n".join(['      "Status": {', '        "type": "object",', *lines[:-1], '        "additionalProperties": false', "      },\n"])


def build_depends():
    """Returns the field of debian/control."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    text = subprocess.run(["make", "-s", "-C", DOCS.parent, "build-depends"], check=True, capture_output=True, text=True,
                          env=clean).stdout
    spaced = re.sub(r" *\((\W+)", r" (\1 ", text.replace("|", " | ").replace("<!", " <!"))
    return "Build-Depends: " + (",\n" + " " * 15).join(sorted(set(spaced.splitlines()))) + "\n"


def outdated(program):
    """Returns the outdated documents: {path: new text}."""
    texts = {path: path.read_text() for path in map(
        DOCS.joinpath, ("configuration.md", "api.md", "openapi.json", "../debian/control"))}
    settings_path, api, description, control = texts
    new = {
        settings_path: generate(texts[settings_path], settings(program)),
        api: re.sub("(<!-- figures -->\n)(?:.*\n)*?(<!-- end of figures -->\n)", lambda found: found[1] + figures_markdown() + found[2], texts[api]),
        description: re.sub(r' {6}"Status": \{\n(?:.*\n)*? {6}\},\n', lambda _: figures_schema(), texts[description]),
        control: re.sub(r"Build-Depends:.*\n(?: .*\n)*", lambda _: build_depends(), texts[control]),
    }
    return {path: text for path, text in new.items() if text != texts[path]}


def main(*argv):
    is_check = argv[0] == "--check"
    changed = outdated(argv[-1])
    for path, text in changed.items():
        print(f"{path.resolve().relative_to(DOCS.parent)}: {'outdated; run make docs' if is_check else 'updated'}")
        if not is_check:
            path.write_text(text)
    return 1 if is_check and changed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
