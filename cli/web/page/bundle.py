#!/usr/bin/env python3
"""bundle.py D3.js PAGE.html STYLE.css MODULE.js... >OUT.html: one document that loads nothing.

The modules are joined in the order in which they import each other, in one function: imports and exports are removed, so
names at their top level have to be unique. The document's policy allows exactly this script and this style, by hash."""

import base64
import hashlib
import pathlib
import re
import sys

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w]+\.js)";\n', re.M)
EXPORT = re.compile(r"^export (?:const|let|class|function|async function) (\w+)", re.M)
TEXT = re.compile(r"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"|'[^'\n]*'", re.S)
USE = r"(?<!\w)(?<![^.]\.)%s\b(?!:)"  # no member, no key
NAME = re.compile(r"^(?:export )?(?:const|let|class|function|async function) (\w+)", re.M)


def in_order(modules):
    """Returns the names of the modules, each after those that it imports."""
    done = []

    def visit(name, path):
        if name in path:
            sys.exit(f"modules import each other: {' -> '.join([*path, name])}")
        if name not in done:
            for _, other in IMPORT.findall(modules[name]):
                visit(other, [*path, name])
            done.append(name)

    for name in modules:
        visit(name, [])
    return done


def check_imports(modules):
    """Each module imports exactly what it uses, and each export is imported."""
    exports = {one: name for name, text in modules.items() for one in EXPORT.findall(text)}
    unused = {*exports}
    for name, text in modules.items():
        imported = {one: other for names, other in IMPORT.findall(text) for one in re.findall(r"\w+", names)}
        unused -= imported.keys()
        text = TEXT.sub("", IMPORT.sub("", text))
        code = re.sub("`[^`]*`", lambda found: " ".join(re.findall(r"\$\{([^}]*)", found[0])), text)
        declared = {*re.findall(r"\b(?:const|let|class|function) (\w+)", text)}
        for one, other in imported.items():
            if exports.get(one) != other:
                sys.exit(f"{name}: {other} does not export {one}")
            if not re.search(USE % one, text):
                sys.exit(f"{name}: {one} is imported but not used")
        for one in exports.keys() - imported.keys() - declared:
            if re.search(USE % one, code):
                sys.exit(f"{name}: {one} is used but not imported")
    if unused:
        sys.exit(f"exported but not imported: {', '.join(sorted(unused))}")


def join(modules):
    """Returns the text of all modules."""
    check_imports(modules)
    owners, texts = {}, []
    for name in in_order(modules):
        text = modules[name]
        for one in NAME.findall(text):
            if owners.setdefault(one, name) != name:
                sys.exit(f"{one} is in {owners[one]} and in {name}")
        text = re.sub(r"^export ", "", IMPORT.sub("", text), flags=re.M)
        if re.search(r"^(import|export)\b", text, re.M):
            sys.exit(f"{name}: an import or export that this program does not know")
        texts.append(f"// {name}\n{text}")
    return "\n".join(texts)


def hash_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def main(d3, page, style, *scripts):
    modules = {pathlib.Path(path).name: pathlib.Path(path).read_text() for path in scripts}
    script = f"{pathlib.Path(d3).read_text().strip()}\n(() => {{\n\"use strict\";\n{join(modules)}}})();\n"
    style = pathlib.Path(style).read_text()
    for text, end in ((script, "</script"), (script, "<!--"), (style, "</style")):
        if end in text.lower():
            sys.exit(f"{end} would end the element")
    policy = (f"default-src 'none'; script-src {hash_of(script)}; style-src {hash_of(style)}; connect-src 'self'; "
              "img-src data:; base-uri 'none'; form-action 'none'")
    parts = {"POLICY": policy, "STYLE": style, "SCRIPT": script}
    sys.stdout.write(re.sub("@(POLICY|STYLE|SCRIPT)@", lambda found: parts[found[1]], pathlib.Path(page).read_text()))


if __name__ == "__main__":
    main(*sys.argv[1:])
