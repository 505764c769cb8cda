#!/usr/bin/env python3
"""How long `buscap report -o x.json` takes to draw a recording of GIGABYTES (20) made here: all of it, a sixteenth, a
256th, and one chunk; and the reports themselves. Prints time, CPU time, memory and what is read. Then the same for
`buscap web`, from its start to the first picture, and the page's zooms down to single records.

The recording is made in DIR (default: a temporary directory) and deleted at the end."""

import datetime
import http.client
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from bench_find import BUILD, GIGABYTES, RUNS, make_recording, run


def utc(ns):
    moment = datetime.datetime.fromtimestamp(ns // 10**9, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + ".%09dZ" % (ns % 10**9)


def measure(what, directory, name, *options):
    """Makes a report RUNS times. Prints the median, and returns the file's bytes."""
    path = pathlib.Path(directory, name)
    argv = [BUILD / "buscap", "report", "-o", path, *options, directory]
    results = [run(*argv) for _ in range(RUNS + 1)][1:]
    _, wall, cpu, memory, read = sorted(results, key=lambda r: r[1])[len(results) // 2]
    data = path.read_bytes()
    path.unlink()
    print(f"{what}: {wall:.3f} s, CPU {cpu:.3f} s, {memory:.0f} MiB, {read:.1f} MB read, {len(data) / 1e6:.1f} MB written")
    return data


def measure_web(directory):
    """Asks `buscap web` as its page does: all, then the middle eighth, again and again."""
    began = time.monotonic()
    web = subprocess.Popen([BUILD / "buscap", "web", directory], stdout=subprocess.PIPE, text=True)
    try:
        host, token = re.fullmatch(r"http://([^/]*)/\?token=(.*)\n", web.stdout.readline()).groups()
        server = http.client.HTTPConnection(host)

        def draw(query):
            server.request("GET", f"/data/overview?columns=512&rows=200{query}&token={token}")
            answer = server.getresponse()
            body = answer.read()
            assert answer.status == 200, body
            return json.loads(body), len(body)

        def first_picture():
            picture, size = draw("")
            server.request("GET", f"/data/events?token={token}")
            assert server.getresponse().read()
            return picture, size

        picture, size = first_picture()
        print(f"web, from its start to the first picture with its events: {time.monotonic() - began:.3f} s, {size / 1e6:.1f} MB")
        origin, first, last = int(picture["origin_ns"]), 0, picture["extent"]["to"]
        slowest = 0
        while picture["unit"] != "records":
            eighth = (last - first) // 8
            first, last = first + 4 * eighth, first + 5 * eighth
            began = time.monotonic()
            picture, size = draw(f"&from={origin + first}&to={origin + last}")
            took = time.monotonic() - began
            slowest = max(slowest, took)
            print(f"web, {(last - first) / 1e9:.3f} s of it by {picture['unit']}: {took:.3f} s, {size / 1e6:.1f} MB")
        memory = int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{web.pid}/status").read_text())[1]) / 1024
        print(f"web: slowest zoom {slowest:.3f} s, {memory:.0f} MiB")
    finally:
        web.terminate()
        web.wait()


def main():
    if shutil.disk_usage(os.environ.get("DIR", tempfile.gettempdir())).free < GIGABYTES * 1.1e9:
        sys.exit(f"bench_report: needs {GIGABYTES * 1.1:.0f} GB of free space; set DIR, or a smaller GIGABYTES")
    with tempfile.TemporaryDirectory(prefix="buscap-report-", dir=os.environ.get("DIR")) as directory:
        make_recording(directory)
        size = sum(path.stat().st_size for path in pathlib.Path(directory).glob("*.byu.lz4"))
        print(f"recording: {size / 1e9:.1f} GB")
        overview = json.loads(measure("all", directory, "x.json"))["overview"]
        middle = int(overview["origin_ns"]) + overview["extent"]["to"] // 2
        span = overview["extent"]["to"]
        for what, part in (("1/16", span // 16), ("1/256", span // 256), ("one chunk", 10_000_000)):
            measure(what, directory, "x.json", "--from", utc(middle), "--to", utc(middle + part))
        measure("all, 512 columns and 1,024 rows", directory, "x.json", "--columns", "512", "--rows", "1024")
        measure("HTML", directory, "x.html")
        measure_web(directory)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
