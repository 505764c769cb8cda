"""The lines that buscapd can log, as its sources have them: what tests/system/test_logs.py holds docs/messages.md against.

Each is a format in which what is filled in stands as a zero byte: "\\0: unplugged; ...". Only what goes on as it
came ("%s" alone) has no line of its own: it is made elsewhere, and found there."""

import re

import harness

# The functions whose format is a line of the log, and which argument it is.
FUNCTIONS = {
    "bc_log": 1, "bc_log_limited": 2, "bc_usb_framer_log": 2, "tell_failure": 1, "report_damage": 1,
}

# Sentences, and parts of them, that are made elsewhere and logged as they are: the file, and the arguments of calls
# that they are. Of snprintf() those into a buffer of one of these names.
SENTENCES = {
    "daemon/main/daemon.c": {"snprintf": (2,)},
    "daemon/base/lock.c": {"snprintf": (2,)},
    "daemon/main/socket.c": {"snprintf": (2,)},
    "daemon/main/source_open.c": {"snprintf": (2,)},
    "daemon/recorder/session.c": {"snprintf": (2,)},
    "daemon/store/retention.c": {"snprintf": (2,)},
    "daemon/recorder/loss_report.c": {"snprintf": (2,)},
    "daemon/store/open_segment.c": {"bc_open_segment_mark_stuck": (2,), "set_error": (2, 3), "refuse_file": (1,)},
    "daemon/store/rotator.c": {"bc_open_segment_mark_stuck": (2,)},
    "daemon/hook/hook.c": {"snprintf": (2,), "fail": (3,)},
    "capture/usb/usb_source.c": {"snprintf": (2,), "usb_end_with": (2,)},
    "capture/source/file_source.c": {"snprintf": (2,), "hand_over_end": (2,)},
}
BUFFERS = ("err", "why", "what", "error", "piece->what", "piece->err", "state->err", "state->error", "s->outcome.why", "s->outcome.err")

MACROS = {"BC_MANIFEST_SUFFIX": ".xxh128", "BC_VERSION": "\0"}
LEVELS = {"ERROR": "error", "WARNING": "warning", "NOTICE": "notice", "INFO": "info", "DEBUG": "debug"}

_CONVERSION = re.compile(r'%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]')
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([A-Za-z_]\w*)|(\s+)|(.)', re.S)


def without_comments(text):
    return re.sub(r'/\*.*?\*/|("(?:[^"\\]|\\.)*")', lambda m: m.group(1) or " ", text, flags=re.S)


def arguments(text, at):
    """The arguments of the call whose parenthesis opens before `at`."""
    found, depth, start, quoted = [], 0, at, False
    while True:
        c = text[at]
        if quoted:
            at += c == "\\"
            quoted = c != '"'
        elif c == '"':
            quoted = True
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            if depth == 0:
                return found + [text[start:at]]
            depth -= 1
        elif c == "," and depth == 0:
            found.append(text[start:at])
            start = at + 1
        at += 1


def formats(argument):
    """The formats that an argument may be: literals and macros joined, one for each side of a ?:. None is left out
    silently: what is no literal gives []."""
    alternatives, joined = [], None
    for literal, word, blank, other in _TOKEN.findall(argument):
        if blank:
            continue
        if literal or (not word and not other):
            joined = (joined or "") + literal
        elif word in MACROS:
            joined = (joined or "") + MACROS[word]
        elif word.startswith("PRI") and joined is not None:
            joined += {"u": "u", "d": "d", "x": "x"}[word[3]]
        elif joined is not None:
            alternatives.append(joined)
            joined = None
    if joined is not None:
        alternatives.append(joined)
    texts = [a.replace('\\"', '"').replace("\\\\", "\\") for a in alternatives]
    return [_CONVERSION.sub("\0", t.replace("%%", "%")) for t in texts if t]


def calls(path, function, index):
    """(path, the argument at that index, all arguments) of each call of a function."""
    text = without_comments((harness.ROOT / path).read_text())
    for match in re.finditer(rf"(?<![\w.>]){function}\(", text):
        given = arguments(text, match.end())
        line_start = text.rfind("\n", 0, match.start()) + 1
        is_definition = re.match(r"(static |void |int |bool |size_t )", text[line_start:])
        if not is_definition and len(given) > index:
            yield path, given[index], given


def level_of(given):
    words = re.findall(r"BC_(?:LOG|NEWS)_(\w+)", " ".join(given[:2]))
    return {LEVELS[word] for word in words if word in LEVELS}


def lines():
    """All that may be logged: {format: (levels, paths)}."""
    found = {}

    def add(text, levels, path):
        if text.strip("\0") == "" or not re.search(r"[a-z]", text):
            return
        known = found.setdefault(text, (set(), set()))
        known[0].update(levels)
        known[1].add(path)

    paths = sorted(str(p.relative_to(harness.ROOT)) for folder in ("daemon", "capture")
                   for p in (harness.ROOT / folder).rglob("*.c"))
    for path in paths:
        for function, index in FUNCTIONS.items():
            for _, argument, given in calls(path, function, index):
                for text in formats(argument):
                    add(text, level_of(given), path)
        for function, indexes in SENTENCES.get(path, {}).items():
            for index in indexes:
                for _, argument, given in calls(path, function, index):
                    if function != "snprintf" or given[0].strip() in BUFFERS:
                        for text in formats(argument):
                            add(text, set(), path)
    for text in re.findall(r'return "(.+?)";|, "((?:while|for|by) .+?)"}', "".join(
            without_comments((harness.ROOT / path).read_text())
            for path in ("capture/usb/usb_framer.c", "daemon/recorder/loss_report.c"))):
        add("\0 " + text[1] if text[1] else text[0], set(), "daemon/recorder/loss_report.c" if text[1] else "capture/usb/usb_framer.c")
    return found


if __name__ == "__main__":
    for text, (levels, where) in sorted(lines().items(), key=lambda item: sorted(item[1][1])):
        print(",".join(sorted(where)), "|", ",".join(sorted(levels)), "|", text.replace("\0", "~"))
