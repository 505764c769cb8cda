"""The README: each command of its tour works, in their order; link targets of it and docs/README.md exist."""

import os
import re
import shutil

import pytest

import harness
from harness import BUSCAPD, Daemon, equal, run
from web_harness import Web

pytestmark = pytest.mark.documents

README = harness.ROOT / "README.md"

# Commands that are expected to fail, with their exit codes.
CODES = {"build/buscap diff --first": 1}


def commands(title):
    """The indented lines of a section."""
    section = re.search(rf"^## {title}\n(.*?)^## ", README.read_text(), re.M | re.S)[1]
    return [line.strip() for line in section.splitlines() if line.startswith("    ")]


@pytest.mark.nightly
def test_every_command_of_the_tour_works(tmp):
    """Replaces /tmp by the test's directory and build/ by that of the programs. buscap top prints one page into a pipe."""
    env = {**os.environ, "PATH": f"{harness.BUILD}:{os.environ['PATH']}", "BUSCAP_SOCKET": str(tmp / "buscapd.sock")}
    lines = commands("A tour on the simulated bus")
    assert len(lines) > 30, lines
    daemon = None
    try:
        for line in lines:
            here = re.sub(r"\bbuild/", f"{harness.BUILD}/", line.replace("/tmp/", f"{tmp}/"))
            words = here.split("#")[0].split()
            if words[0] == "export":
                equal(words[1], f"BUSCAP_SOCKET={tmp}/buscapd.sock", line)
            elif "&" in words:
                daemon = Daemon(*words[1 : words.index("&")], program=BUSCAPD)
                daemon.socket = tmp / "buscapd.sock"
                daemon.__enter__()
                daemon.wait_ready()
                harness.wait_until(lambda: daemon.status()["counts"]["received"] > 600_000, "600,000 samples")
            elif words == ["kill", "%1;", "wait"]:
                code = daemon.stop()
                assert code == 0 or (code == 4 and b"samples lost: " in daemon.err), (code, daemon.err)
                daemon.__exit__(None, None, None)
                daemon = None
            elif words[1] == "web":
                with Web(*words[2:]) as web:
                    equal(web.send("/").status, 200, line)
                    equal(web.stop(), 0, line)
            elif words[0] == "valgrind" and shutil.which("valgrind") is None:
                pytest.skip("valgrind is not installed")
            else:
                if words[1:] == ["top"]:
                    here = here.replace(" top", " top --once", 1)
                wanted = next((code for start, code in CODES.items() if line.startswith(start)), 0)
                done = run("sh", "-c", here, env=env, cwd=harness.ROOT)
                if done.returncode == 4 and b"samples lost" in done.stderr:
                    harness.note(f"the machine was too busy for: {line}")
                    continue
                equal(done.returncode, wanted, f"{line}: {done.stdout[-500:]}{done.stderr.decode()}")
    finally:
        if daemon is not None:
            daemon.__exit__(AssertionError, None, None)


def test_link_targets_exist():
    for path in (README, harness.ROOT / "docs/README.md", *sorted((harness.ROOT / "docs").glob("*.md"))):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text()):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.name} points to {target}, which does not exist"


def test_the_commands_for_a_lab_host_work_on_debian():
    """A user's PATH lacks /usr/sbin, a user can't read the system journal, and drop-ins need their directory."""
    made = set()
    count = 0
    for line in (harness.ROOT / "docs/install.md").read_text().splitlines():
        if line.startswith("#"):
            made = set()  # a reader may start with this section
        if not line.startswith("    "):
            continue
        for command in re.split(r"[|;&]+", line.split("  #")[0]):
            words = command.split()
            if not words:
                continue
            count += 1
            assert words[0] not in ("buscapd", "journalctl", "runuser", "udevadm"), f"wants sudo: {line}"
            if words[:3] == ["sudo", "mkdir", "-p"]:
                made.add(words[3])
            for word in words[1:]:
                if word.startswith("/etc/systemd/system/") and ("ln" in words or "tee" in words):
                    assert os.path.dirname(word) in made, f"the section does not create its directory: {line}"
    assert count > 40, count


def test_the_index_has_every_document():
    index = (harness.ROOT / "docs/README.md").read_text()
    for path in sorted((harness.ROOT / "docs").iterdir()):
        if path.suffix in (".md", ".json") and path.name != "README.md":
            assert f"]({path.name})" in index, f"docs/README.md lacks {path.name}"
