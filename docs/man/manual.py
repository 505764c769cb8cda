#!/usr/bin/env python3
"""Prints a manual page: a page in mdoc in which some lines stand for what a program says about itself.

    manual.py PAGE PROGRAM

    .\\" commands             a section for each command of PROGRAM, from --options and --help
    .\\" options              PROGRAM's own options, from --options
    .\\" settings: SECTION    the settings of a section, from --list-settings

The programs are the only place where options and settings are described; docs/tables.py writes the tables of settings in
docs/configuration.md.
"""

import itertools
import pathlib
import re
import subprocess
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import tables


def ask(program, *argv):
    return subprocess.run([program, *argv], check=True, capture_output=True, text=True).stdout


def escape(text):
    return re.sub(r"(?m)^(?=[.'])", r"\\&", text.replace("\\", "\\e").replace("-", "\\-"))


def macro(name, text):
    """A line of a macro; a word that mdoc would take for one, or for punctuation, is escaped."""
    return " ".join([name, *(re.sub(r"^(?=[A-Z][a-z]?$|[\W_]$)", r"\\&", word) for word in escape(text).split())])


def prose(text):
    """Text, a sentence a line; what is in backquotes is .Ql."""
    lines = []
    for sentence in re.split(r"(?<=[.?!]) (?=[A-Z0-9`])", " ".join(text.split())):
        parts = sentence.split("`")
        for at in range(1, len(parts), 2):
            # Punctuation next to the quotes goes on the line of the macro.
            opening = "(" if parts[at - 1].endswith("(") else ""
            closing = re.match(r"[.,:;)]*", parts[at + 1]).group()
            parts[at - 1] = parts[at - 1].removesuffix(opening)
            parts[at] = " ".join([".Ql", *opening, macro("", parts[at]).strip(), *closing])
            parts[at + 1] = parts[at + 1].removeprefix(closing)
        for at, part in enumerate(parts):
            lines += [part] if at % 2 else map(escape, textwrap.wrap(part.strip(), 70, break_on_hyphens=False))
    return lines


def literal(lines):
    return [".Bd -literal -offset 2n", *map(escape, textwrap.dedent("\n".join(lines)).split("\n")), ".Ed"]


def paragraphs(text):
    """The paragraphs of a help text; indented lines are columns."""
    for paragraph in text.strip("\n").split("\n\n"):
        yield ".Pp"
        for is_column, lines in itertools.groupby(paragraph.split("\n"), lambda line: line.startswith(" ")):
            yield from literal(lines) if is_column else prose(" ".join(lines))


def item(head, text, *more):
    is_literal = re.match(r"usb\[|bcp1 |start, ", text)  # the values of the option, which keep their case
    sentence = (text if is_literal else text[0].upper() + text[1:]) + ("" if text.endswith(".") else ".")
    return [f".It {head}", *prose(sentence), *more]


def option_list(rows):
    """Rows of --options as a list."""
    yield ".Bl -tag -width Ds"
    for _, letter, name, metavar, _, text in rows:
        flags = " , ".join("Fl " + escape(flag) for flag in (letter, name and "-" + name) if flag)
        value = f" Ns Oo = Ns Ar {metavar[1:-1]} Oc" if metavar.startswith("[") else macro(" Ar", metavar) if metavar else ""
        yield from item(flags + value, text)
    yield ".El"


def command_section(program, command, rows):
    """A command, and its verbs, as a section. The help text is: usage, text, options, text, exit code, example."""
    usage, *text = ask(program, "help", command).rstrip().split("\n\n")
    options = next(at for at, part in enumerate(text) if re.match(r"Options of |  -|      --", part))
    yield f".Ss {command}"
    yield from (macro(".Dl", line[7:]) for line in usage.split("\n"))
    yield from paragraphs("\n\n".join(text[:options]))
    while re.match(r"Options of |  -|      --", text[options]):
        head = re.match(r"Options of (.*):", text[options])
        of = command if not head else f"{command} {head[1]}"
        own = [row for row in rows if row[0] == of and (row[1] or row[2]) and row[2] not in ("help", "socket", "json" if head else "")]
        if head and head[1] == "all commands":
            own = [row for row in rows if row[0].startswith(command + " ") and row[2] == "json"][:1]
        if own:
            yield from [".Pp", f"Options of {head[1]}:"] if head else []
            yield from option_list(own)
        options += 1
    *more, example = text[options:]
    yield from paragraphs("\n\n".join(more).replace("Exit code:", "Exit status:"))
    yield from [".Pp", "Example:", *literal(("         " + example).split("Example:", 1)[1].split("\n"))]


def commands(program, rows):
    for row in rows:
        if not (row[1] or row[2]) and row[0] != "-" and " " not in row[0]:
            yield from command_section(program, row[0], rows)


def settings(rows):
    yield ".Bl -tag -width Ds"
    for row in rows:
        key, name = re.fullmatch(r"(.*?)([A-Z]*)", row.key).groups()
        head = f"{key}= Ns" if row.section == "sim" else f"{key}\\& Ns Ar {name} No =" if name else f"{key} ="
        yield from item(f"Cm {head} Ar {row.metavar}", row.meaning, ".Pp", *prose(f"Default: {row.default}."),
                        *([f"SIGHUP: {row.sighup}."] if row.sighup else []))
    yield ".El"


def main(page, program):
    missing = {row.section for row in tables.settings(program)} if page.endswith(".5.in") else set()
    for line in pathlib.Path(page).read_text().splitlines():
        what, _, section = line.removeprefix('.\\" ').partition(": ") if line.startswith('.\\" ') else ("", "", "")
        if what == "settings":
            lines = settings([row for row in tables.settings(program) if row.section == section])
            missing.remove(section)
        elif what in ("commands", "options"):
            rows = [row.split("\t") for row in ask(program, "--options").splitlines()]
            lines = commands(program, rows) if what == "commands" else option_list(
                [row for row in rows if row[0] == "-" and (row[1] or row[2])])
        else:
            lines = [line]
        print(*lines, sep="\n")
    if missing:
        sys.exit(f"{page}: no settings of {', '.join(missing)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
