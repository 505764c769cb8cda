"""Parses manual pages in mdoc, as far as ours use it: sections, lists and examples, for tests/system/test_manual.py."""

import functools
import re
import shlex

# Macros with a meaning inside a line; other words are text.
_QUOTES = {"Ql": ("'", "'"), "Dq": ('"', '"'), "Pq": ("(", ")"), "Bq": ("[", "]"), "Op": ("[", "]")}
_PLAIN = {"Ar", "Cm", "Pa", "Ic", "Ev", "Dv", "No", "Em", "Li", "Sx", "Nm", "Va"}
_PAIRS = {"Oo": "[", "Oc": "]", "Po": "(", "Pc": ")"}
_CLOSING = set(".,:;)]?!")

_ESCAPES = {r"\-": "-", r"\(aq": "'", r"\(ga": "`", r"\(ti": "~", r"\(ha": "^", r"\e": "\\", r"\&": "", r"\ ": " "}


def plain(text):
    """Returns the text without escapes."""
    return re.sub(r"\\(\(..|.)", lambda found: _ESCAPES[found.group(0)], text)


@functools.cache
def line_text(line):
    """Returns a line as the reader sees it, without emphasis."""
    if not line.startswith("."):
        return plain(line)
    lexer = shlex.shlex(line[1:].replace("\\", "\\\\"), posix=True, punctuation_chars="")
    lexer.whitespace_split, lexer.commenters, lexer.quotes = True, "", '"'
    words = list(lexer)
    out, prefix, close, is_joined = "", "", [], True
    if words[0] in ("It", "D1", "Sh", "Ss", "Dl"):
        words = words[1:]

    def append(text):
        nonlocal out, is_joined
        out += text if is_joined or not out else " " + text
        is_joined = False

    for word in words:
        if word == "Ns":
            is_joined = True
        elif word == "Fl":
            prefix = "-"
        elif word in _PLAIN:
            prefix = ""
        elif word == "Xr":
            prefix = ""
        elif word in _QUOTES:
            append(_QUOTES[word][0])
            close.append(_QUOTES[word][1])
            is_joined, prefix = True, ""
        elif word in ("Oo", "Po"):
            append(_PAIRS[word])
            is_joined, prefix = True, ""
        elif word in ("Oc", "Pc"):
            out += _PAIRS[word]
            is_joined, prefix = False, ""
        elif word in _CLOSING:
            out += word
        elif word == "|":
            append(word)
        else:
            append(prefix + plain(word))
    return out + "".join(reversed(close))


class Page:
    """sections: {title: lines}; parts: {(title, subsection): lines}, with None before the first subsection."""

    def __init__(self, text):
        self.lines = text.splitlines()
        self.sections = {}
        self.parts = {}
        section = part = None
        for line in self.lines:
            if line.startswith(".Sh "):
                section, part = line_text(line), None
            elif line.startswith(".Ss "):
                part = line_text(line)
            self.sections.setdefault(section, []).append(line)
            self.parts.setdefault((section, part), []).append(line)

    def subsections(self, section):
        return [part for title, part in self.parts if title == section and part is not None]

    def text(self, section):
        return " ".join(line_text(line) for line in self.sections[section] if not line.startswith((r".\"", ".B", ".E")))


def items(lines):
    """Returns (head, lines) of each item of the outermost lists."""
    depth, found = 0, []
    for line in lines:
        depth += line.startswith(".Bl") - line.startswith(".El")
        if line.startswith(".It") and depth == 1:
            found.append((line_text(line), []))
        elif found and depth >= 1:
            found[-1][1].append(line)
    return found


@functools.cache
def _line_flags(line):
    return ["-" + word for word in re.findall(r"(?<=\bFl )(\S+)", line)] if line.startswith(".") else []


def flags(lines):
    """Returns all options in these lines, with dashes."""
    return {flag for line in lines for flag in _line_flags(line)}


def displays(lines):
    """Returns (preceding comment or "", text) of each literal display."""
    found, comment, display = [], "", None
    for line in lines:
        if line.startswith(r".\""):
            comment = line[3:].strip()
        elif line.startswith(".Bd -literal"):
            display = []
        elif line == ".Ed" and display is not None:
            found.append((comment, "".join(plain(one) + "\n" for one in display)))
            comment, display = "", None
        elif display is not None:
            display.append(line)
    return found
