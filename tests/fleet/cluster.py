"""ClickHouse of Debian 12 on loopback: one server, or shards of two replicas with ZooKeeper. And today's, as an engine only.

The packages are downloaded and unpacked into the cache, not installed. A Cluster owns its servers' processes and their
directory; servers can be killed and started again at any time, with their data. All end with the block.
"""

import contextlib
import fcntl
import hashlib
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

import harness

PACKAGES = ("clickhouse-server", "zookeeper")
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "buscapd")
SKIPPED = 77  # tests/tools/ci_step.sh
START_S = 60

CONFIG = """<?xml version="1.0"?>
<yandex>
  <logger><level>warning</level><console>1</console></logger>
  <http_port>{http}</http_port>
  <tcp_port>{tcp}</tcp_port>
  <interserver_http_port>{interserver}</interserver_http_port>
  <interserver_http_host>127.0.0.1</interserver_http_host>
  <listen_host>127.0.0.1</listen_host>
  <path>{path}/data/</path>
  <tmp_path>{path}/tmp/</tmp_path>
  <mark_cache_size>16777216</mark_cache_size>
  <users_config>{path}/users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <remote_servers><lab>{shards}</lab></remote_servers>
  {replicated}
</yandex>
"""
REPLICATED = """<zookeeper><node><host>127.0.0.1</host><port>{keeper}</port></node>
    <session_timeout_ms>1200</session_timeout_ms></zookeeper>
  <macros><shard>{shard}</shard><replica>{replica}</replica></macros>
  <distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>"""
USERS = """<?xml version="1.0"?>
<yandex>
  <profiles><default/></profiles>
  <users>
    <default><password></password><networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile><quota>default</quota></default>
    <shipper><password>secret</password><networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile><quota>default</quota></shipper>
  </users>
  <quotas><default/></quotas>
</yandex>
"""


def skip(why):
    """Ends the program: what it checks can't be checked here."""
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def apt(*argv, **options):
    done = subprocess.run(["apt-get", *argv], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["?"])[-1]
        skip(f"apt-get {' '.join(argv[:2])}: {last}; Debian 12 has {' and '.join(PACKAGES)}, 13 has no clickhouse-server")
    return done.stdout


def unpacked():
    """Returns the directory with what this system lacks of the packages and those that they need."""
    if shutil.which("apt-get") is None:
        skip("ClickHouse and ZooKeeper are taken from Debian 12")
    missing = re.findall(r"^Inst (\S+)[^(]*\((\S+)", apt("-s", "install", "--no-install-recommends", *PACKAGES), re.M)
    name = hashlib.sha256(repr(missing).encode()).hexdigest()[:16]
    path = CACHE / f"clickhouse-{name}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "clickhouse.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            new = path.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)
            (new / "debs").mkdir(parents=True)
            apt("download", *(f"{package}={version}" for package, version in missing), cwd=new / "debs")
            for deb in (new / "debs").iterdir():
                subprocess.run(["dpkg", "-x", deb, new], check=True)
            shutil.rmtree(new / "debs")
            for old in CACHE.glob("clickhouse-*[0-9a-f]"):
                shutil.rmtree(old)
            new.rename(path)
    return path


def free_ports(n):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Refused(Exception):
    """An error of a server: the first line."""


class Process:
    """A server's process, which writes `directory`/log."""

    def __init__(self, directory):
        self.directory, self.process = directory, None
        directory.mkdir()

    def start(self):
        with open(self.directory / "log", "ab") as log:
            self.process = harness.popen(self.argv(), env=self.env(), cwd=self.directory, stdin=subprocess.DEVNULL,
                                         stdout=log, stderr=subprocess.STDOUT)

    def kill(self, number=signal.SIGKILL):
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait()

    def wait(self):
        """Waits until it answers."""
        def answers():
            if self.process.poll() is not None:
                raise AssertionError(f"it has ended:\n{(self.directory / 'log').read_text(errors='replace')[-3000:]}")
            with contextlib.suppress(OSError, Refused):
                return self.is_ready()
        harness.wait_until(answers, f"{self.directory.name} answers", START_S)


class Keeper(Process):
    """ZooKeeper."""

    def __init__(self, directory, root, port):
        super().__init__(directory)
        self.root, self.port = root, port
        (directory / "zoo.cfg").write_text(
            f"dataDir={directory}\nclientPort={port}\nclientPortAddress=127.0.0.1\ntickTime=500\nmaxClientCnxns=0\n"
            "admin.enableServer=false\n4lw.commands.whitelist=ruok\n")

    def argv(self):
        java = next(iter(sorted(self.root.glob("usr/lib/jvm/*/bin/java"))), None) or "java"
        names = ("zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-nop", "log4j-1.2", "netty-all", "metrics-core",
                 "snappy-java", "commons-cli")
        jars = [str(place / f"{name}.jar") for name in names for place in (self.root / "usr/share/java",
                                                                           pathlib.Path("/usr/share/java"))]
        return [java, "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", ":".join(filter(os.path.exists, jars)),
                "org.apache.zookeeper.server.quorum.QuorumPeerMain", self.directory / "zoo.cfg"]

    def env(self):
        return dict(os.environ)

    def is_ready(self):
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            connection.sendall(b"ruok")
            return connection.recv(10) == b"imok"


class Server(Process):
    """A server of ClickHouse."""

    def __init__(self, directory, root, ports, shards, replicated=""):
        super().__init__(directory)
        self.root, self.port = root, ports[0]
        (directory / "config.xml").write_text(CONFIG.format(
            http=ports[0], tcp=ports[1], interserver=ports[2], path=directory, shards=shards, replicated=replicated))
        (directory / "users.xml").write_text(USERS)
        self.url = f"http://127.0.0.1:{self.port}"

    def argv(self):
        program = self.root / "usr/sbin/clickhouse-server"
        return [program if program.exists() else "/usr/sbin/clickhouse-server",
                f"--config-file={self.directory}/config.xml"]

    def env(self):
        lib = self.root / "usr/lib"
        return {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, (*lib.glob("*-linux-gnu"), lib)))}

    def is_ready(self):
        return self.ask("SELECT 1")

    def ask(self, query, data=None, settings="", database="default"):
        """Sends a query. Returns the answer as text."""
        url = f"{self.url}/?{settings}database={database}&query={urllib.parse.quote(query)}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(url, data or b"", timeout=START_S) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as why:
            raise Refused(f"{query}: {why.read().decode(errors='replace')}") from None
        except http.client.HTTPException as why:
            raise OSError(f"{query}: half an answer: {why!r}") from None

    def rows(self, query, database="default"):
        """Returns the rows of an answer, with numbers where it has some."""
        return [tuple(int(field) if re.fullmatch(r"-?\d+", field) else field for field in line.split("\t"))
                for line in self.ask(query, database=database).splitlines()]


class Engine(Server):
    """Today's ClickHouse as a library, chdb of npm, behind a port. It can't be a cluster."""

    def __init__(self, directory):
        Process.__init__(self, directory)
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self.modules = CACHE / "chdb"
        if not (self.modules / "node_modules/chdb").exists():
            done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", self.modules, "chdb@3"],
                                  capture_output=True, text=True, check=False)
            if done.returncode != 0:
                skip(f"npm install chdb: {(done.stderr.strip().splitlines() or ['?'])[-1]}")

    def argv(self):
        return ["node", pathlib.Path(__file__).with_name("engine.cjs"), self.port, self.directory / "data"]

    def env(self):
        return {**os.environ, "NODE_PATH": str(self.modules / "node_modules")}


SHARD = "<shard><internal_replication>true</internal_replication>{}</shard>"
REPLICA = "<replica><host>127.0.0.1</host><port>{}</port></replica>"


class Servers:
    """`servers` and, if there is one, `keeper`, from the beginning of the block to its end."""

    def __init__(self, servers, keeper=None):
        self.servers, self.keeper = servers, keeper

    def __enter__(self):
        try:
            if self.keeper:
                self.keeper.start()
                self.keeper.wait()
            for server in self.servers:
                server.start()
            for server in self.servers:
                server.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception):
        for process in (*self.servers, self.keeper):
            if process is not None and exception and exception[0]:
                log = (process.directory / "log").read_text(errors="replace")
                print(f"---- {process.directory.name}, exit code {process.process and process.process.poll()}:\n{log[-1500:]}")
            if process is not None and process.process is not None and process.process.poll() is None:
                process.kill()


class Cluster(Servers):
    """`shards` shards of `replicas` servers, as <lab> in remote_servers. With more than one replica, their tables are
    replicated through `keeper`."""

    def __init__(self, directory, shards=1, replicas=1):
        root, n = unpacked(), shards * replicas
        ports = free_ports(3 * n + 1)
        self.ports = [ports[3 * i : 3 * i + 3] for i in range(n)]
        named = "".join(SHARD.format("".join(REPLICA.format(self.ports[shard * replicas + i][1]) for i in range(replicas)))
                        for shard in range(shards))
        keeper = Keeper(directory / "keeper", root, ports[-1]) if replicas > 1 else None
        super().__init__([
            Server(directory / f"server{i}", root, self.ports[i], named, "" if keeper is None else REPLICATED.format(
                keeper=ports[-1], shard=i // replicas + 1, replica=i % replicas + 1)) for i in range(n)], keeper)
