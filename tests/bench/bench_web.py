#!/usr/bin/env python3
"""What two pages of `buscap web` in a browser cost a daemon that records 3 M samples/s: the ratio of its CPU time to that
of another daemon that does the same at the same time, without pages; and samples dropped. Each in turn has the pages."""

import math
import os
import pathlib
import tempfile
import time

from harness import Daemon, status
from page_browser import Tab, chromium
from web_harness import Web

ROUNDS = 6
SECONDS = 30


def cpu_time(daemon):
    fields = pathlib.Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(daemons):
    """Returns the CPU time per second of each."""
    began = time.monotonic()
    before = [cpu_time(one) for one in daemons]
    time.sleep(SECONDS)
    after = [cpu_time(one) for one in daemons]
    return [(b - a) / (time.monotonic() - began) for a, b in zip(before, after)]


def watched(tmp, driver, daemons, which):
    """Returns the ratio for the daemon that has the pages."""
    with Web(tmp / f"out{which}", "--map", "pc", socket=daemons[which].socket) as web, Tab(driver) as browser:
        url = f"http://{web.host}/?token={web.token}"
        browser.open(url).idle()
        browser.driver.switch_to.new_window("window")
        browser.open(url).idle()
        for window in browser.driver.window_handles[1:]:
            browser.driver.switch_to.window(window)
            browser.wait("!document.hidden && buscap.model.live && buscap.model.live.status")
        cpu = measure(daemons)
    print(f"with two pages {cpu[which]:.4f} s/s, without {cpu[1 - which]:.4f} s/s, {cpu[which] / cpu[1 - which]:.3f} x", flush=True)
    return cpu[which] / cpu[1 - which]


def main():
    with tempfile.TemporaryDirectory(prefix="buscap-") as name:
        tmp = pathlib.Path(name)
        argv = ["--source", "sim:rate=3M", "-b", "filesize:20M", "-b", "files:20"]
        with (chromium() as driver, Daemon(*argv, "-o", tmp / "out0", socket=tmp / "socket0") as one,
              Daemon(*argv, "-o", tmp / "out1", socket=tmp / "socket1") as two):
            daemons = [one, two]
            for daemon in daemons:
                daemon.wait_ready()
            ratios = [watched(tmp, driver, daemons, number % 2) for number in range(ROUNDS)]
            mean = math.exp(sum(map(math.log, ratios)) / ROUNDS)
            dropped = sum(status(daemon.socket)["counts"]["dropped"][where] for daemon in daemons for where in ("buffer", "disk"))
            print(f"mean {mean:.3f} x; {dropped} samples dropped")


if __name__ == "__main__":
    main()
