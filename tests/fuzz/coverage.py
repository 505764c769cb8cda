"""Prints how much of the code that handles bytes from outside the fuzz targets have reached.

Usage: coverage.py FOLDER TARGET..., after tests/fuzz/run.sh FOLDER with targets built for coverage.

Of each room, the files counted are those that read or act on bytes from a file, a client, a device, the configuration or
the daemon. Threads, timers, terminals and what only writes our own data are not: the tests cover them.
"""

import json
import pathlib
import subprocess
import sys

GOAL = 80  # percent

# Room: the files that count, or those that don't, after a "-".
REACHABLE = {
    "formats/base": "fast_text.h json.c utf8.c",
    "formats/bus": "-",
    "formats/segment": "- metadata.c",
    "formats/trace": "-",
    "formats/codec": "-",
    "capture/usb": "-",
    "formats/http": "-",
    "daemon/config": "- options.c",
    "daemon/ingest": "trigger.c",
    "daemon/api": "api_params.c",
    "cli/live": "response_text.c status.c",
    "cli/io": "client.c",
    "cli/term": "json_path.c text.c",
}


def counts(room, name):
    names = REACHABLE[room].split()
    return name not in names[1:] if names[0] == "-" else name in names


def read_summaries(folder, targets):
    """{path: (lines, covered lines)}"""
    profile = folder / "all.profdata"
    subprocess.run(["llvm-profdata", "merge", "-sparse", "-o", profile, *folder.glob("*.profraw")], check=True)
    objects = [argument for target in targets if target != "-v" for argument in ("-object", folder / target)]
    done = subprocess.run(["llvm-cov", "export", "-summary-only", f"-instr-profile={profile}", *objects[1:]],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    root = pathlib.Path.cwd()
    found = {}
    for file in json.loads(done.stdout)["data"][0]["files"]:
        path = pathlib.Path(file["filename"])
        if path.is_absolute():
            if root not in path.parents:
                continue
            path = path.relative_to(root)
        lines = file["summary"]["lines"]
        found[path] = (lines["count"], lines["covered"])
    return found


def main():
    found = read_summaries(pathlib.Path(sys.argv[1]), sys.argv[2:])
    total = covered = 0
    for room in REACHABLE:
        files = {path: lines for path, lines in found.items() if str(path.parent) == room and counts(room, path.name)}
        room_total = sum(lines for lines, _ in files.values())
        room_covered = sum(lines for _, lines in files.values())
        total += room_total
        covered += room_covered
        print(f"{room:<16} {room_covered:>6} of {room_total:>6} lines {100 * room_covered / max(room_total, 1):>5.1f} %")
        if "-v" in sys.argv:
            for path, (lines, some) in sorted(files.items()):
                print(f"    {path.name:<24} {some:>6} of {lines:>6} lines {100 * some / max(lines, 1):>5.1f} %")
    share = 100 * covered / max(total, 1)
    print(f"{'all':<16} {covered:>6} of {total:>6} lines {share:>5.1f} %; the goal is {GOAL} %")


main()
