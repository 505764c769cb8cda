"""A virtual machine under QEMU, with a root shell.

    with Machine(image, directory, boards={"board1": socket}) as machine:
        machine.boot()
        machine.run("systemctl start x")           returns standard output; fails if the command fails
        machine.try_run("false").code              1

It is emulated (TCG), so its speed is not meaningful. The root file system is never changed; a second disk carries files
in and out. The end of the console output and the journal are also in files on the host, even if the machine crashes.
"""

import base64
import dataclasses
import pathlib
import select
import shutil
import socket
import subprocess
import time

MEMORY_MIB = 1024
TIME_FACTOR = 5  # limits here and in the steps are multiplied by this, for a slow host
# Services that need a login, a package archive or a real machine's disk.
MASKED = ("serial-getty@ttyS0.service", "getty@tty1.service", "systemd-update-utmp.service", "e2scrub_reap.service",
          "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer",
          "systemd-machine-id-commit.service", "systemd-pstore.service", "motd-news.timer",
          "systemd-random-seed.service", "getty-static.service", "modprobe@configfs.service",
          "modprobe@loop.service", "modprobe@dm_mod.service", "modprobe@fuse.service", "dev-hugepages.mount",
          "ssh.service", "ssh.socket", "dev-mqueue.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount", "kmod-static-nodes.service",
          "systemd-user-sessions.service", "systemd-update-utmp-runlevel.service", "systemd-boot-system-token.service")


class MachineFailed(AssertionError):
    """The machine failed, and probably not the daemon in it."""


@dataclasses.dataclass
class Done:
    code: int
    out: str
    err: str


class Machine:
    def __init__(self, image, directory, boards, carried=()):
        """boards: name -> socket. carried: files for the machine, in /mnt."""
        self.image = image
        self.directory = pathlib.Path(directory)
        self.boards = boards
        self.carried = carried
        self.process = None
        self._shell = None
        self._received = b""
        self._number = 0

    def _path(self, name):
        return self.directory / name

    # ---- start and end

    def _make_disk(self):
        """Builds the disk that carries files in and out."""
        tree = self._path("carried")
        tree.mkdir()
        for path in self.carried:
            shutil.copy(path, tree)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1", "-d", str(tree),
                        str(self._path("carry.ext4")), "2G"], check=True, timeout=60 * TIME_FACTOR,
                       stdout=subprocess.DEVNULL)

    def _command(self):
        words = ["console=ttyS0", "quiet", "panic=-1", "mitigations=off", "root=/dev/vda", "rw",
                 "systemd.show_status=0", "random.trust_cpu=on", "systemd.wants=machine-shell.service",
                 "systemd.wants=machine-journal.service", *(f"systemd.mask={unit}" for unit in MASKED)]
        argv = ["qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-m",
                str(MEMORY_MIB), "-smp", "2", "-nodefaults", "-no-reboot", "-display", "none", "-monitor", "none",
                "-serial", f"file:{self._path('console')}", "-kernel", self.image.kernel, "-initrd",
                self.image.initrd, "-append", " ".join(words),
                "-drive", f"file={self.image.root},if=virtio,format=raw,snapshot=on",
                "-drive", f"file={self._path('carry.ext4')},if=virtio,format=raw,cache=unsafe",
                "-device", "virtio-serial-pci",
                "-chardev", f"socket,id=shell,path={self._path('shell')},server=on,wait=off",
                "-device", "virtserialport,chardev=shell,name=shell",
                "-chardev", f"file,id=journal,path={self._path('journal')}",
                "-device", "virtserialport,chardev=journal,name=journal",
                "-device", "qemu-xhci,id=xhci"]
        for name, path in self.boards.items():
            argv += ["-chardev", f"socket,id={name},path={path},reconnect=1",
                     "-device", f"usb-redir,chardev={name},id=usb-{name},bus=xhci.0"]
        return [str(word) for word in argv]

    def __enter__(self):
        self._make_disk()
        with open(self._path("qemu"), "wb") as out:
            self.process = subprocess.Popen(self._command(), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                                                 "TMPDIR": str(self.directory)})
        return self

    def __exit__(self, *exception):
        if self._shell is not None:
            self._shell.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def boot(self, timeout=150):
        """Waits until it is up."""
        end = time.monotonic() + timeout * TIME_FACTOR
        while self._shell is None:
            self._check_alive()
            try:
                shell = socket.socket(socket.AF_UNIX)
                shell.connect(str(self._path("shell")))
                self._shell = shell
            except OSError:
                shell.close()
                if time.monotonic() > end:
                    raise MachineFailed("QEMU did not create the socket of the shell") from None
                time.sleep(0.1)
        self.run("systemctl is-system-running --wait || systemctl is-active multi-user.target", timeout)
        self.run("mount /dev/vdb /mnt")

    def power_off(self, timeout=60):
        """Shuts it down cleanly."""
        self.run("umount /mnt; systemctl --no-block poweroff")
        try:
            self.process.wait(timeout * TIME_FACTOR)
        except subprocess.TimeoutExpired:
            raise MachineFailed(f"no shutdown within {timeout * TIME_FACTOR} s") from None

    def fetch(self, name):
        """Copies a directory from the second disk, after power_off(). Returns its path."""
        subprocess.run(["debugfs", "-R", f"rdump /{name} {self.directory}", str(self._path("carry.ext4"))], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120 * TIME_FACTOR)
        return self._path(name)

    # ---- the shell

    def _check_alive(self):
        if self.process.poll() is not None:
            raise MachineFailed(f"QEMU ended with exit code {self.process.returncode}: {self.tail('qemu')}")

    def try_run(self, script, timeout=30):
        """Runs a shell script as root. After the timeout it is killed, with exit code 124."""
        self._number += 1
        timeout *= TIME_FACTOR
        packed = base64.b64encode(script.encode()).decode()
        self._shell.sendall(f"{self._number} {timeout} {packed}\n".encode())
        end = time.monotonic() + timeout + 20
        while b"\n" not in self._received:
            self._check_alive()
            if time.monotonic() > end:
                raise MachineFailed(f"no answer from the machine: {script}")
            if select.select([self._shell], [], [], 1)[0]:
                piece = self._shell.recv(1 << 20)
                if not piece:
                    raise MachineFailed("the machine's shell has ended")
                self._received += piece
        line, _, self._received = self._received.partition(b"\n")
        number, code, out, err = line.decode().split()
        assert int(number) == self._number, f"answer to {number} instead of {self._number}"
        texts = ("" if text == "-" else base64.b64decode(text).decode(errors="replace") for text in (out, err))
        return Done(int(code), *texts)

    def run(self, script, timeout=30):
        done = self.try_run(script, timeout)
        if done.code != 0:
            raise AssertionError(f"{script!r} ended with exit code {done.code}:\n{done.out}{done.err}")
        return done.out

    def wait_until(self, script, what, timeout=30):
        """Repeats the script until it succeeds. Returns its output."""
        done = self.try_run(f"while ! {{ {script}\n}}; do sleep 0.1; done", timeout)
        if done.code != 0:
            raise AssertionError(
                f"waited {timeout * TIME_FACTOR} s for: {what}\n{script}\n{done.out[-2000:]}{done.err[-2000:]}")
        return done.out

    # ---- output

    def catch_up(self, timeout=10):
        """Waits until the journal on the host is complete, if the machine responds."""
        if self._shell is None:
            return
        mark = f"the journal up to request {self._number}"
        try:
            self.try_run(f"echo '{mark}' | systemd-cat", timeout)
            end = time.monotonic() + timeout * TIME_FACTOR
            while mark not in self.tail("journal", 50) and time.monotonic() < end:
                time.sleep(0.1)
        except (AssertionError, OSError, ValueError) as why:
            print(f"the journal below may be incomplete: {why}")

    def tail(self, name, lines=40):
        """Returns the last lines of one of its files: console, journal, qemu."""
        path = self._path(name)
        text = path.read_text(errors="replace") if path.exists() else ""
        return "\n".join(text.splitlines()[-lines:])
