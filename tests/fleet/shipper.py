"""buscap-ship with faults, for check.py: shipper.py FAULTS ARGUMENT...

FAULTS is a JSON object. `kill_before`, `kill_after`: the number of a request, from 0, before or after which the process
kills itself. `without`: "ledger" sends a segment's row first; "last_row" doesn't ask for the last row; "known" knows of no
segment. `boot`, `up_s`: another boot id, and for how long the machine has been up.
"""

import io
import json
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
from buscap import ship  # noqa: E402

faults = json.loads(sys.argv[1])
without = faults.get("without")
ask, send, insert = ship.Database.ask, ship.Run.send, ship.Database.insert
requests = -1


def counted_ask(self, query, data=b""):
    global requests
    requests += 1
    if without == "last_row" and query.startswith("SELECT count() > 0"):
        return [[b"1"]]
    if without == "known" and query.startswith("SELECT node"):
        return []
    if faults.get("kill_before") == requests:
        os.kill(os.getpid(), signal.SIGKILL)
    rows = ask(self, query, data)
    if faults.get("kill_after") == requests:
        os.kill(os.getpid(), signal.SIGKILL)
    return rows


def ledger_first(self, one, path, **more):
    self.put(one.key, {**vars(one), "node": self.node, "path": path, "skew_s": self.skew_s, "present": 1})
    send(self, one, path, **more)


ship.Database.ask = counted_ask
if without == "ledger":
    ship.Run.send = ledger_first
if "up_s" in faults:
    time.clock_gettime = lambda _: faults["up_s"]
if "boot" in faults:
    ship.open = lambda path, *more, **options: (
        io.StringIO(faults["boot"]) if path.endswith("boot_id") else open(path, *more, **options))
sys.exit(ship.main(sys.argv[2:]))
