"""What bash and zsh complete, by the files that are made of the programs' tables (cli/completion.sh)."""

import os
import pathlib
import pty
import re
import shutil
import time

import pytest

import harness
from harness import BUILD, BUSCAP, equal, need, run
from test_help import BUSCAP_ROWS, BUSCAPD_ROWS, COMMANDS, CONFIG, options_of, verbs_of, words_of

FILES = need(BUILD / "completion")
FORMATS = run(BUSCAP, "formats").stdout.decode()
BASH_COMPLETION = pathlib.Path("/usr/share/bash-completion/bash_completion")
TOP = [name for name in COMMANDS if " " not in name]

# Each query is a file whose words a line holds; the answer is what `complete -F` is given back.
BASH = r"""
source "$1/buscap.bash"
source "$1/buscapd.bash"
while IFS= read -r COMP_LINE && read -r COMP_CWORD && mapfile -t -n $((COMP_CWORD + 1)) COMP_WORDS; do
	COMP_POINT=${#COMP_LINE}
	name=${COMP_WORDS[0]}
	_$name "$name" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD > 0 ? COMP_CWORD - 1 : 0]}"
	((${#COMPREPLY[@]})) && printf '%s\n' "${COMPREPLY[@]}"
	echo END
done
"""

# A key completes the line that stands in a file, and writes what was offered to another.
ZSHRC = r"""
fpath=($FILES $fpath)
autoload -Uz compinit
compinit -u -d $ZDOTDIR/dump
setopt no_beep no_auto_list no_auto_menu no_list_ambiguous
PS1='> '
compadd() {
	if [[ ${@[1,(i)(-|--)]} != *-[OAD]\ * ]]; then
		local -a __offered
		builtin compadd -A __offered "$@"
		(( $#__offered )) && print -rl -- $__offered >>$ZDOTDIR/answer.part
	fi
	builtin compadd "$@"
}
zle -C offer complete-word _main_complete
answer() {
	BUFFER=$(<$ZDOTDIR/query)
	CURSOR=$#BUFFER
	: >$ZDOTDIR/answer.part
	zle offer
	print -r -- "$BUFFER" >$ZDOTDIR/line
	BUFFER=
	mv $ZDOTDIR/answer.part $ZDOTDIR/answer
}
zle -N answer
bindkey '^T' answer
: >$ZDOTDIR/ready
"""


def bash_words(line):
    """The words of a line as bash parts them: at blanks, and ':' and '=' for themselves."""
    words = re.findall(r"[:=]+|[^\s:=]+", line)
    return words + [""] if line[-1:] == " " else words


class Bash:
    """Asks one bash after another line."""

    def ask(self, lines, directory=None):
        text = "".join(f"{line}\n{len(bash_words(line)) - 1}\n" + "".join(f"{word}\n" for word in bash_words(line))
                       for line in lines)
        done = run("bash", "--norc", "-c", BASH, "bash", FILES, data=text.encode(), cwd=directory)
        equal((done.returncode, done.stderr), (0, b""), "bash")
        answers = done.stdout.decode().split("END\n")
        equal(len(answers) - 1, len(lines), "answers")
        return [answer.split("\n")[:-1] for answer in answers[:-1]]


class Zsh:
    """Asks one zsh, on a terminal, line by line."""

    def __init__(self, tmp):
        if shutil.which("zsh") is None:
            pytest.skip("zsh is not installed")
        self.dir = tmp
        (tmp / ".zshrc").write_text(ZSHRC)

    def __enter__(self):
        self.terminal, slave = pty.openpty()
        env = {"PATH": os.environ["PATH"], "ZDOTDIR": str(self.dir), "FILES": str(FILES), "TERM": "vt100",
               "LC_ALL": "C.UTF-8", "HOME": str(self.dir)}
        self.process = harness.popen(["zsh", "-i"], stdin=slave, stdout=slave, stderr=slave, env=env, cwd=self.dir,
                                        start_new_session=True)
        os.close(slave)
        os.set_blocking(self.terminal, False)
        self._wait(self.dir / "ready")
        return self

    def __exit__(self, *exception):
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)

    def _wait(self, path):
        end = time.monotonic() + harness.TIMEOUT_S
        while not path.exists():
            try:
                os.read(self.terminal, 65536)
            except BlockingIOError:
                time.sleep(0.002)
            assert self.process.poll() is None and time.monotonic() < end, f"zsh: no {path.name}"

    def ask(self, lines, directory=None):
        answers = []
        for line in lines:
            (self.dir / "answer").unlink(missing_ok=True)
            (self.dir / "query").write_text(line)
            os.write(self.terminal, b"\x14")
            self._wait(self.dir / "answer")
            # As it is to stand on the line: with its odd characters quoted.
            quoted = (self.dir / "answer").read_text().split("\n")[:-1]
            answers.append([re.sub(r"\\(.)", r"\1", word) for word in quoted])
        return answers


def commands_of(program):
    """(what stands before an option, the options) of each command of it."""
    if program == "buscapd":
        return [("buscapd ", options_of("-", BUSCAPD_ROWS))]
    return [("buscap ", options_of("-"))] + [(f"buscap {name} ", options_of(name)) for name in COMMANDS]


def everything():
    return commands_of("buscap") + commands_of("buscapd")


def check(shell, cases):
    """`cases` maps a line to what it is completed with."""
    lines = list(cases)
    for line, got in zip(lines, shell.ask(lines)):
        equal(sorted(set(got)), sorted(cases[line]), f"{line!r} is completed with")


def options_cases():
    return {before + "--": ["--" + row.long for row in rows if row.long] for before, rows in everything()}


def words_cases(flavour):
    """Each option of fixed words, given in each way, and each word of it begun."""
    cases = {}
    for before, rows in everything():
        for row in rows:
            if not row.kind.startswith(("choice:", "list:")):
                continue
            words = row.kind.split(":", 1)[1].split("|")
            # What bash replaces begins behind the last ':'.
            for option in words_of(row):
                cases[f"{before}{option} "] = words
                if option.startswith("--"):
                    cases[f"{before}{option}="] = words
                for word in words:
                    begun = word[:2]
                    if ":" not in begun and ":" not in word[:-1]:
                        cases[f"{before}{option} {begun}"] = [other for other in words if other.startswith(begun)]
                if row.kind.startswith("list:"):
                    lead = words[0] + ","
                    left = words if flavour == "bash" else words[1:]
                    cases[f"{before}{option} {lead}"] = [(lead if flavour == "bash" else "") + word for word in left]
    return cases


def commands_cases():
    cases = {"buscap ": TOP, "buscap help ": TOP, "buscap re": [name for name in TOP if name.startswith("re")],
             "buscap help tr": ["trigger"]}
    for name in TOP:
        verbs = [verb.split()[1] for verb in verbs_of(name)]
        if verbs and name != "replay":
            cases[f"buscap {name} "] = verbs
            cases[f"buscap {name} {verbs[0][:2]}"] = [verb for verb in verbs if verb.startswith(verbs[0][:2])]
            cases[f"buscap help {name} "] = verbs
    cases["buscap trigger add x "] = ["start", "stop", "toggle", "snapshot", "mark"]
    cases["buscap trigger add x mark "] = ["addr=", "type=", "proc=", "port=", "board", "gap", "idle"]
    cases["buscap trigger add --pre 1s x mark gap b"] = ["board"]
    cases["buscap help rotate "] = []
    return cases


def formats(mode):
    place = "rw".index(mode)
    return [line.split()[1] for line in FORMATS.splitlines() if re.match(r"[r-][w-] ", line) and line[place] == mode]


def format_keys(mode, name):
    word = {"r": "read", "w": "write"}[mode]
    found = re.search(rf"^\S\S {re.escape(name)} .*\n(?: .*\n)*? +options to {word}:(.*)$", FORMATS, re.M)
    return found.group(1).split() if found else []


def formats_cases(flavour):
    cases = {}
    for before, rows in everything():
        for row in rows:
            if row.kind.startswith("format-"):
                mode = {"read": "r", "write": "w"}[row.kind[7:]]
                for option in words_of(row):
                    cases[f"{before}{option} "] = formats(mode)
                    cases[f"{before}{option} la"] = [name for name in formats(mode) if name.startswith("la")]
    for name in formats("w"):
        cases[f"buscap convert -O {name}:"] = format_keys("w", name)
    for name in formats("r"):
        cases[f"buscap dump -I {name}:"] = format_keys("r", name)
    assert cases["buscap convert -O bcp1:"] == ["map=", "seed="], cases["buscap convert -O bcp1:"]
    cases["buscap convert --output-format=bcp1:m"] = ["map="]
    cases["buscap convert -O bcp1:map=pages,s"] = ["pages,seed="] if flavour == "bash" else ["seed="]
    return cases


def settings_cases():
    keys = []
    for row in CONFIG:
        key = re.sub(r"[A-Z].*", "", row.long)
        key = key if key != row.long else key + "="
        if " " not in key and key not in keys:
            keys.append(key)
    assert "log.level=" in keys and "mapping.attr." in keys, keys
    cases = {"buscapd --set ": keys, "buscapd --set usb.ba": ["usb.back_off=", "usb.back_off_max="],
             "buscapd --set=log": ["log.level="]}
    for row in CONFIG:
        key = row.long.replace("NAME", "x")
        if row.kind.startswith(("choice:", "list:")) and " " not in key:
            cases[f"buscapd --set {key}="] = row.kind.split(":", 1)[1].split("|")
        elif row.kind not in ("file", "dir") and " " not in key:
            cases[f"buscapd --set {key.replace('CYCLE', 'D_READ').replace('KEY', 'x')}="] = []
    return cases


def make_paths(directory):
    (directory / "folder").mkdir()
    (directory / "fold.byu").write_text("")
    (directory / "with blank").write_text("")


def paths_cases():
    cases = {}
    for before, rows in everything():
        for row in rows:
            if row.kind in ("file", "dir"):
                wanted = ["folder"] if row.kind == "dir" else ["fold.byu", "folder"]
                for option in words_of(row):
                    cases[f"{before}{option} fol"] = wanted
                    if option.startswith("--"):
                        cases[f"{before}{option}=fol"] = wanted
    for row in (row for row in BUSCAP_ROWS if not row.short and not row.long and row.kind == "file"):
        cases[f"buscap {row.command} fol"] = ["fold.byu", "folder"]
        cases[f"buscap {row.command} with"] = ["with blank"]
        cases[f"buscap {row.command} -- fol"] = ["fold.byu", "folder"]
    cases["buscap info -j fold.byu fol"] = ["fold.byu", "folder"]
    cases["buscapd --source file:fol"] = ["fold.byu", "folder"]
    cases["buscapd --source=file:fol"] = ["fold.byu", "folder"]
    cases["buscapd --set output.dir=fol"] = ["folder"]
    cases["buscap mark fol"] = []
    cases["buscap replay list fol"] = []
    return cases


# ---- bash


def test_bash_completes_exactly_the_options():
    check(Bash(), options_cases())
    check(Bash(), {before + "-": [word for row in rows for word in words_of(row)] for before, rows in everything()})


def test_bash_completes_exactly_the_fixed_words():
    check(Bash(), words_cases("bash"))


def test_bash_completes_commands_and_verbs():
    check(Bash(), commands_cases())


def test_bash_completes_formats_and_what_they_take():
    check(Bash(), formats_cases("bash"))


def test_bash_completes_settings_and_their_words():
    check(Bash(), settings_cases())


def test_bash_completes_paths(tmp):
    make_paths(tmp)
    cases = paths_cases()
    lines = list(cases)
    for line, got in zip(lines, Bash().ask(lines, tmp)):
        equal(sorted(got), sorted(cases[line]), f"{line!r} is completed with")


def bash_types(directory, keys, before=""):
    """What the line is after these keys, in a bash on a terminal that has run the commands `before`."""
    terminal, slave = pty.openpty()
    result = directory / "result"
    rc = directory / "rc"
    rc.write_text(f"{before}\nsource {FILES}/buscap.bash\nsource {FILES}/buscapd.bash\nPS1='ready> '\n"
                  "bind 'set bell-style none' 'set page-completions off' 'set completion-query-items 0'\n"
                  f"""bind -x '"\\C-t": printf %s "$READLINE_LINE" >{result}.part; mv {result}.part {result}'\n""")
    shell = harness.popen(["bash", "--rcfile", rc, "-i"], stdin=slave, stdout=slave, stderr=slave,
                             cwd=directory, env={"PATH": os.environ["PATH"], "TERM": "vt100", "HOME": str(directory)},
                             start_new_session=True)
    os.close(slave)
    os.set_blocking(terminal, False)
    said = b""

    def read():
        nonlocal said
        try:
            said += os.read(terminal, 65536)
        except (BlockingIOError, OSError):
            pass

    def ready():
        read()
        return b"ready> " in said

    def has_result():
        read()
        return result.exists()

    try:
        harness.wait_until(ready, "bash's prompt", harness.TIMEOUT_S)
        os.write(terminal, keys.encode() + b"\x14")
        harness.wait_until(has_result, f"the line after {keys!r}; {said}", harness.TIMEOUT_S)
        return result.read_text()
    finally:
        shell.kill()
        shell.wait()
        os.close(terminal)
        result.unlink(missing_ok=True)


def test_bash_completes_what_is_typed(tmp):
    make_paths(tmp)
    for typed, line in (
            ("buscap conv\t", "buscap convert "), ("buscap recover --mo\t", "buscap recover --mode "),
            ("buscap recover --mode sal\t", "buscap recover --mode salvage "),
            ("buscap recover --mode=sal\t", "buscap recover --mode=salvage "),
            ("buscap convert -O bcp1:map=pages,s\t7", "buscap convert -O bcp1:map=pages,seed=7"),
            ("buscap diff --only inst,lin\t", "buscap diff --only inst,line "),
            ("buscapd --set log.l\tinf\t", "buscapd --set log.level=info "),
            ("buscapd -b filesi\t8M", "buscapd -b filesize:8M"),
            ("buscapd --source fi\tfold.\t", "buscapd --source file:fold.byu "),
            ("buscapd --set=output.d\tfolde\t", "buscapd --set=output.dir=folder/"),
            ("buscap info wit\t", "buscap info with\\ blank "), ("buscap record sto\t", "buscap record stop ")):
        equal(bash_types(tmp, typed), line, f"what {typed!r} becomes")
    # Where bash breaks words at blanks alone, and where bash-completion is loaded.
    for before in ("COMP_WORDBREAKS=' '", f"source {BASH_COMPLETION}"):
        if before.startswith("source") and not BASH_COMPLETION.exists():
            harness.note("bash-completion is not installed: nothing is typed beside it")
            continue
        for typed, line in (("buscap recover --mode=sal\t", "buscap recover --mode=salvage "),
                            ("buscapd --set log.l\tinf\t", "buscapd --set log.level=info "),
                            ("buscapd --source fi\tfold.\t", "buscapd --source file:fold.byu ")):
            equal(bash_types(tmp, typed, before), line, f"what {typed!r} becomes after {before}")


# ---- zsh


def test_zsh_completes_exactly_the_options(tmp):
    cases = options_cases()
    with Zsh(tmp) as zsh:
        check(zsh, cases)


def test_zsh_completes_exactly_the_fixed_words(tmp):
    with Zsh(tmp) as zsh:
        check(zsh, words_cases("zsh"))


def test_zsh_completes_commands_and_verbs(tmp):
    with Zsh(tmp) as zsh:
        check(zsh, commands_cases())


def test_zsh_completes_formats_and_what_they_take(tmp):
    with Zsh(tmp) as zsh:
        check(zsh, formats_cases("zsh"))


def test_zsh_completes_settings_and_their_words(tmp):
    with Zsh(tmp) as zsh:
        check(zsh, settings_cases())


def test_zsh_completes_paths(tmp):
    make_paths(tmp)
    with Zsh(tmp) as zsh:
        check(zsh, paths_cases())


# ---- the files


def test_the_files_are_whole():
    for name in ("buscap.bash", "_buscap", "buscapd.bash", "_buscapd"):
        assert "@NAME@" not in (FILES / name).read_text(), name
        shell = "bash" if name.endswith(".bash") else "zsh"
        if shutil.which(shell):
            equal(run(shell, "-n", FILES / name).stderr, b"", name)
