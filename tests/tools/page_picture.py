#!/usr/bin/env python3
"""page_picture.py PAGE.png ZOOM.png: screenshots of the page of `buscap web`, for the README.

buscapd records the bus of a PC while it boots (tests/support/boot_bus.py), in real time: 20 seconds. PAGE.png is the page
on a light screen, ZOOM.png a part of the recording on a dark one, with two markers. `make picture` draws docs/web.png and
docs/web-zoom.png."""

import pathlib
import sys
import tempfile

import boot_bus
from harness import BUSCAP, Daemon, run, status, wait_until
from page_browser import Tab, chromium
from web_harness import Web

WIDTH, HEIGHT = 1280, 860
NAMES = """0-9ffff         low memory
a0000-bffff     VGA memory
c0000-effff     option ROMs
f0000-fffff     BIOS
100000-27ffff   kernel
280000-7fffff   kernel heap
e0000000-e0ffffff framebuffer
ffff0000-ffffffff BIOS ROM
"""
# Seconds from the start; where the kernel starts, after samples were lost.
ZOOM = 7.8, 9.0
MARKERS = 8.2, 8.66  # around the gap


def record(tmp):
    out, socket = tmp / "boot", tmp / "socket"
    (tmp / "boot.bcp1").write_bytes(boot_bus.boot(scale=0.6))
    source = f"file:{tmp}/boot.bcp1,clock_hz={boot_bus.CLOCK_HZ}"
    with Daemon("--once", "--source", source, "--speed", "realtime", "-o", out, "--label", "boot", "--set", "pipeline.flush=50ms",
                socket=socket) as daemon:
        # 11 seconds
        wait_until(lambda: socket.exists() and status(socket)["counts"]["received"] > 960_000, "the login prompt")
        run(BUSCAP, "mark", "--socket", socket, "login: root")
        wait_until(lambda: daemon.process.poll() is not None, "the end")
    return out


def main(page, zoom):
    with tempfile.TemporaryDirectory(prefix="buscap-") as name:
        tmp = pathlib.Path(name)
        (tmp / "names").write_text(NAMES)
        out = record(tmp)
        with Web(out, "--map", "pc", "--map", tmp / "names") as web, chromium() as driver, Tab(driver, WIDTH, HEIGHT) as browser:
            browser.open(f"http://{web.host}/?token={web.token}").idle()
            browser.screenshot(pathlib.Path(page), above="#panel")
            browser.set_theme("dark")
            box = browser.js("document.querySelector('#timeline').clientWidth")
            start, _ = browser.view()
            left, right = 212, 12

            def pixel(second):
                view = browser.view()
                return left + (box - left - right) * (start + 1e9 * second - view[0]) / (view[1] - view[0])

            browser.drag("#timeline", (pixel(ZOOM[0]), 80), (pixel(ZOOM[1]), 80))
            browser.click("[data-act=measure]")
            for second in MARKERS:
                browser.drag("#timeline", (pixel(second), 80), (pixel(second), 80))
            browser.wait("buscap.model.measured !== null")
            browser.drag("#range", (5, 5), (5, 5))  # hides the tip
            browser.driver.execute_script("document.activeElement.blur()")
            browser.idle()
            browser.screenshot(pathlib.Path(zoom), above="#panel")


if __name__ == "__main__":
    main(*sys.argv[1:])
