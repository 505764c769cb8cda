"""What the Makefile does on a machine without the packages: it installs them before anything else, or stops. Stubs stand
in for the compiler and all other programs that packages bring, and note when they are called, so this is the same on every
machine, and needs no network. `make check-fresh` tries it on a real one."""

import os
import re
import shutil

import pytest

from harness import ROOT, equal, run

pytestmark = pytest.mark.documents

# Make compiles these; the rest of the sources would only cost time.
SOURCES = ("formats/base/bytes.h", "formats/base/hash.c", "capture/sim/sim.c", "daemon/main/main.c", "cli/term/main.c",
           "tests/unit/formats/test_byu_record.c", "tests/support/test_main.c", "tests/support/faultfs.c")
# Notes its call. A compiler also makes its output, so that make goes on to the next rule.
STUB = """#!/bin/sh
echo "${0##*/}" >>"$NOTES"
while [ $# != 0 ]; do
    [ "$1" != -o ] || { mkdir -p "$(dirname "$2")" && : >"$2"; }
    shift
done
"""
# Time enough for others to be called too early.
DEPS = """#!/bin/sh
echo begin >>"$NOTES"
echo " $*" >>"$NOTES.words"
sleep 0.05
echo end >>"$NOTES"
"""
INSTALLED = ("pkg-config", "python3", "clang", "clang-format", "clang-tidy", "cppcheck", "valgrind", "lintian", "lz4",
             "curl", "llvm-cov", "dpkg-buildpackage")
# Knows the libraries that deps.sh has been asked for.
PKG_CONFIG = """#!/bin/sh
echo pkg-config >>"$NOTES"
for word; do
    case $word in
    -*) ;;
    *) grep -qF " $word:" "$NOTES.words" || exit 1 ;;
    esac
done
"""
STUBS = ("gcc", "cc", "ar", "ld", "apt-get", *INSTALLED)
# These install nothing.
PLAIN = {"all", "install", "uninstall", "check", "layers", "dist", "clean", "help"}
COMPILED = ("demo", "test", "bench", "fuzz", "torture")


def targets():
    """Returns the targets of `make help`."""
    text = "".join(path.read_text() for path in (ROOT / "Makefile", *sorted((ROOT / "mk").glob("*.mk"))))
    return re.findall(r"^([a-z-]+):.*## ", text, re.M)


TARGETS = targets()


@pytest.fixture
def tree(tmp):
    """A copy of the parts that make reads, with stubs for what it calls."""
    for name in ("Makefile", "mk", "docs/man", "docs/openapi.json", "cli/completion.sh", "cli/web/page",
                 *SOURCES):
        (tmp / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp / "tree" / name)
    (tmp / "bin").mkdir()
    tools = [path.relative_to(ROOT) for folder in ("tests/tools", "tests/fuzz") for path in (ROOT / folder).glob("*.sh")]
    for path in [*(tmp / "bin" / name for name in STUBS), *(tmp / "tree" / path for path in tools)]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text({"deps.sh": DEPS, "pkg-config": PKG_CONFIG}.get(path.name, STUB))
        path.chmod(0o755)
    (tmp / "tree/tests/tools/ci_step.sh").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    return tmp


def calls(tree, *words):
    """Makes these, and returns the calls in their order."""
    notes = tree / "notes"
    (tree / "notes.words").write_text("")
    notes.write_text("")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    environment |= {"PATH": f"{tree}/bin:/usr/bin:/bin", "NOTES": str(notes), "PYTHON": f"{tree}/bin/python3", "CC": "gcc"}
    done = run("make", "-k", "-C", tree / "tree", *words, env=environment)
    return notes.read_text().split(), done


def check(tree, *words):
    """deps.sh has ended before anything else runs, and has been asked for all that is called."""
    notes, done = calls(tree, *words)
    equal(notes[:2], ["begin", "end"], f"make {' '.join(words)}: {done.stderr.decode()}")
    asked = {word.partition(":")[0].rpartition("/")[2] for word in (tree / "notes.words").read_text().split()}
    equal(sorted(set(notes) & set(INSTALLED) - asked), [], f"make {' '.join(words)}: called, but not asked for")
    assert b"libraries are missing" not in done.stderr, f"make {' '.join(words)}: {done.stderr.decode()}"
    return notes


def test_all_targets_of_make_help_are_tried():
    assert len(TARGETS) > 30 and set(TARGETS) > PLAIN, TARGETS


@pytest.mark.parametrize("target", sorted(set(TARGETS) - PLAIN))
def test_each_target_installs_its_packages_before_it_runs_anything(tree, target):
    notes = check(tree, "-j8", target)
    assert "gcc" in notes or target not in COMPILED, notes


@pytest.mark.parametrize("target", COMPILED)
def test_the_order_does_not_depend_on_the_number_of_jobs_or_on_what_is_already_built(tree, target):
    check(tree, "-j1", target)
    for path in sorted((tree / "tree/build").rglob("*.[oa]"))[::2]:
        path.unlink()
    check(tree, "-j8", target)


def test_several_targets_install_the_packages_of_all(tree):
    for words in (("all", "test"), ("clean", "demo"), ("install", "deb")):
        check(tree, "-j8", *words)


def test_without_packages_what_compiles_stops_with_one_line(tree):
    (tree / "bin/pkg-config").write_text("#!/bin/sh\nexit 127\n")
    for words in ((), ("-j8",), ("build/buscapd",)):
        shutil.rmtree(tree / "tree/build", ignore_errors=True)
        notes, done = calls(tree, *words)
        equal(notes, [], words)
        lines = done.stderr.decode().splitlines()
        equal((done.returncode, len(lines)), (2, 1), lines)
        assert 'libraries are missing: run "make deps"' in lines[0], lines
    notes, done = calls(tree, "-n", "demo")
    equal((notes, done.returncode, done.stderr), ([], 0, b""), "make -n installs nothing and stops at nothing")
    assert b"tests/tools/demo.sh" in done.stdout, done.stdout
    (tree / "bin/python3").unlink()
    _, done = calls(tree, "layers")
    lines = done.stderr.decode().splitlines()
    equal(lines[:1], [f'{tree}/bin/python3 is missing: run "make deps"'])
    assert done.returncode == 2 and len(lines) == 2 and lines[1].startswith("make: *** "), lines


def test_uninstall_prints_no_commands(tree):
    _, done = calls(tree, "uninstall", f"DESTDIR={tree}/root")
    equal((done.returncode, [line for line in done.stdout.decode().splitlines() if "directory" not in line]), (0, []))


def test_a_function_without_a_declaration_does_not_compile(tree):
    _, done = calls(tree, "-n", "build/formats/base/hash.o")
    assert b" -Werror=implicit-function-declaration " in done.stdout, done.stdout


def test_a_user_without_root_and_sudo_gets_one_line_with_a_command_for_apt(tmp):
    for name, text in (("id", "echo 1000"), ("apt-get", "exit 1"), ("pkg-config", "exit 1")):
        (tmp / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp / name).chmod(0o755)
    words = ["nothing:systemd-dev|systemd(<<254)", "--", "no-such-tool:lz4<!nocheck>,python3:any"]
    done = run(ROOT / "tests/tools/deps.sh", *words, env={"PATH": str(tmp)})
    equal((done.returncode, done.stderr.decode()), (1, "missing: nothing no-such-tool; as root: apt-get update && apt-get satisfy "
          "--no-install-recommends 'systemd-dev|systemd(<<254), lz4<!nocheck>,python3:any'\n"))
