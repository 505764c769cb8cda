#!/usr/bin/env python3
"""picture.py OUT.svg [SECONDS]: a screenshot of `buscap top` as an SVG.

buscapd records a simulated board (tests/board) whose bus load varies, which loses samples once and
is unplugged once. buscap top runs in a tmux terminal of 100 by 30 for SECONDS (330); its last screen is drawn, with
colours. `make picture` draws docs/top.svg."""

import math
import pathlib
import re
import sys
import tempfile
import time
import xml.sax.saxutils

from harness import BUSCAP, Daemon, run
from top_harness import Terminal
from usb_harness import Board

WIDTH, HEIGHT = 100, 30
CELL, LINE, SIZE, MARGIN = 8.4, 18, 14, 14
PAPER, INK = "#16181d", "#c9d1d9"
# The eight terminal colours, normal and bright.
COLOURS = ["#484f58", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#f0f6fc"]
BRIGHT = ["#6e7681", "#ffa198", "#a5f3ad", "#f2cc60", "#a5d6ff", "#e2c5ff", "#b3f0ff", "#ffffff"]


def apply_sgr(style, code):
    """The style after one number of an SGR sequence."""
    colour, is_bold, is_dim, is_reverse = style
    if code == 0:
        return None, False, False, False
    if code == 1:
        is_bold = True
    elif code == 2:
        is_dim = True
    elif code == 7:
        is_reverse = True
    elif code == 22:
        is_bold = is_dim = False
    elif code == 27:
        is_reverse = False
    elif code == 39:
        colour = None
    elif 30 <= code <= 37:
        colour = COLOURS[code - 30]
    elif 90 <= code <= 97:
        colour = BRIGHT[code - 90]
    return colour, is_bold, is_dim, is_reverse


def runs(line, style):
    """Splits a line into pieces of one style: [(column, text, style)]. Also returns the style at its end."""
    found, column = [], 0
    for codes, text in re.findall(r"\x1b\[([\d;]*)m|([^\x1b]+)", line):
        if text:
            found.append((column, text, style))
            column += len(text)
            continue
        for code in codes.split(";"):
            style = apply_sgr(style, int(code or 0))
    return found, style


UP, ALONG = " ▁▂▃▄▅▆▇█", " ▏▎▍▌▋▊▉█"


def bars(x, y, text, colour):
    """Block characters are drawn as shapes, because fonts disagree about their size."""
    path = []
    for i, c in enumerate(text):
        if c in UP:
            width, height = CELL - 0.8, (LINE - 3) * UP.index(c) / 8
        else:
            width, height = (CELL - 0.8) * ALONG.index(c) / 8, LINE - 3
        path.append(f"M{x + i * CELL:.1f} {y + 3:.1f}v-{height:.1f}h{width:.1f}v{height:.1f}z")
    return f'<path fill="{colour}" d="{"".join(path)}"/>'


def svg(screen, title):
    width, height = round(WIDTH * CELL + 2 * MARGIN), HEIGHT * LINE + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
           'font-family="ui-monospace, \'DejaVu Sans Mono\', Menlo, Consolas, monospace" '
           f'font-size="{SIZE}">', f"<title>{xml.sax.saxutils.escape(title)}</title>",
           f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>']
    style = (None, False, False, False)
    for row, line in enumerate(screen.split("\n")[:HEIGHT]):
        pieces, style = runs(line.rstrip("\n"), style)
        for column, text, (colour, is_bold, is_dim, is_reverse) in pieces:
            # Each word is placed at its own cell, so that the font's space width does not matter.
            for part in re.finditer(r"[▁▂▃▄▅▆▇█▏▎▍▌▋▊▉]+|[^▁▂▃▄▅▆▇█▏▎▍▌▋▊▉ ]+" + "| +" * is_reverse, text):
                word, start = part.group(), column + part.start()
                x, y = MARGIN + start * CELL, MARGIN + row * LINE + SIZE - 1
                ink = colour or INK
                if is_reverse:
                    out.append(f'<rect x="{x:.1f}" y="{y - SIZE + 1}" width="{len(word) * CELL:.1f}" '
                               f'height="{LINE}" fill="{ink}"/>')
                    ink = PAPER
                if word[0] in UP + ALONG and word[0] != " ":
                    out.append(bars(x, y, word, ink))
                    continue
                weight = ' font-weight="bold"' if is_bold else ""
                dim = ' opacity="0.6"' if is_dim else ""
                out.append(f'<text x="{x:.1f}" y="{y}" textLength="{len(word) * CELL:.1f}" fill="{ink}"'
                           f'{weight}{dim} xml:space="preserve">{xml.sax.saxutils.escape(word)}</text>')
    return "\n".join(out + ["</svg>", ""])


def act(board, socket, second, seconds):
    """Changes the bus for one second of the session."""
    board.command(f"rate {int(420_000 + 120_000 * math.sin(second / 9) + 60_000 * math.sin(second / 2.3))}")
    if second == seconds // 3:
        board.command("lose 1998")
    if second == seconds // 2:
        run(BUSCAP, "mark", "--socket", socket, "the relay clicked")
    if second == seconds * 2 // 3:
        board.unplug()
    if second == seconds * 2 // 3 + 3:
        board.plug()


def main(out, seconds=330):
    with tempfile.TemporaryDirectory(prefix="buscap-") as name:
        tmp = pathlib.Path(name)
        socket, traces = tmp / "socket", tmp / "traces"
        with Board("serial=BC-0042,rate=420000,agents=2,fifo=4000000") as board:
            with Daemon("--source", "usb", "-o", traces, "-b", "duration:60", program=board.PROGRAM, socket=socket,
                        env=board.env) as daemon:
                daemon.wait_ready()
                with Terminal(tmp, WIDTH, HEIGHT, BUSCAP, "top", "--socket", socket, env={"TERM": "tmux-256color"}) as top:
                    start = time.monotonic()
                    for second in range(seconds):
                        act(board, socket, second, seconds)
                        time.sleep(max(0, start + second + 1 - time.monotonic()))
                    screen = top.colours().replace(str(traces), "/var/lib/buscapd")
                    top.press("q")
                daemon.stop()
    pathlib.Path(out).write_text(svg(screen, "buscap top while a board is recorded"))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]))
