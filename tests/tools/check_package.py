"""Installs, upgrades, removes and purges the packages in a fresh Debian. Requires root. mmdebstrap creates the root
directory, which is kept in build/roots/. systemd does not run there: a replacement of systemctl logs the requests of
the packages' scripts. $PACKAGES is the directory of the packages, $SUITE the Debian release (default: that of this
machine)."""

import contextlib
import os
import pathlib
import platform
import re
import shutil
import tempfile
import zlib

import pytest

import harness
from harness import ROOT, equal, run

SUITE = os.environ.get("SUITE") or platform.freedesktop_os_release().get("VERSION_CODENAME", "")
ROOTS = ROOT / "build/roots"
pytestmark = pytest.mark.timeout(1800)

if os.getuid() != 0:
    pytest.exit("installing the packages in a new root directory requires root", 1)

PACKAGES = pathlib.Path(os.environ["PACKAGES"]).resolve()
NAMES = ("buscapd", "buscap-tools", "python3-buscap")

# Replaces systemctl: the socket is enabled, nothing runs. Requests that only create links are executed.
SYSTEMCTL = """#!/bin/sh
[ -e /usr/sbin/buscapd ] && there=there || there=gone
case " $* " in
*" preset "* | *" enable "* | *" disable "*) exec systemctl.real "$@" ;;
esac
echo "$there: $*" >>/systemctl.log
case " $* " in
*" is-enabled "*" 'buscapd.socket' "* | *" is-enabled "*" buscapd.socket "*) echo enabled ;;
*" is-enabled "*) echo disabled; exit 1 ;;
*" is-active "*) exit 3 ;;
esac
"""


def sources():
    """Returns the apt sources of this machine, changed to SUITE: (suffix, text)."""
    here = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    for path in ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"):
        path = pathlib.Path(path)
        if path.exists() and path.read_text().strip():
            text = re.sub(rf"\b{here}\b", SUITE, path.read_text())
            return path.suffix or ".list", text
    raise AssertionError("no sources.list.d/debian.sources and no sources.list in /etc/apt")


def base():
    """Returns the directory of a minimal Debian with udev and the dependencies of the packages. Creates it once."""
    depends = b",".join(run("dpkg-deb", "-f", package(name), "Depends").stdout for name in NAMES)
    # The first of "a | b", without versions.
    names = {re.split(r"[ |(]", word.strip())[0] for word in depends.decode().split(",")} | {"udev"}
    path = ROOTS / f"{SUITE}-{zlib.crc32(' '.join(sorted(names)).encode()):08x}"
    if path.exists():
        return path
    new = path.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    ROOTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="buscap-apt-") as scratch:
        suffix, text = sources()
        listed = pathlib.Path(scratch, f"list{suffix}")
        listed.write_text(text)
        options = [f"--aptopt={path}" for path in sorted(pathlib.Path("/etc/apt/apt.conf.d").glob("99*"))]
        done = run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(sorted(names))}", *options,
                   SUITE, new, listed, timeout=900)
    equal(done.returncode, 0, done.stderr.decode(errors="replace"))
    new.rename(path)
    return path


def package(name):
    (path,) = PACKAGES.glob(f"{name}_*.deb")
    return path


class Root:
    """A temporary copy of the base: an overlay if possible."""

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            scratch = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="buscap-root-")))
            for name in ("upper", "work", "root"):
                (scratch / name).mkdir()
            self.path = scratch / "root"
            layers = f"lowerdir={base()},upperdir={scratch}/upper,workdir={scratch}/work"
            if run("mount", "-t", "overlay", "-o", layers, "overlay", self.path).returncode == 0:
                stack.callback(self._unmount, self.path)
            else:
                equal(run("cp", "-a", f"{base()}/.", self.path, timeout=300).returncode, 0, "cp")
            equal(run("mount", "-t", "proc", "proc", self.path / "proc").returncode, 0, "mount of /proc")
            stack.callback(self._unmount, self.path / "proc")
            self._stack = stack.pop_all()
        (self / "/run/systemd/system").mkdir(parents=True)
        systemctl = self / "/usr/bin/systemctl"
        systemctl.rename(self / "/usr/bin/systemctl.real")
        systemctl.write_text(SYSTEMCTL)
        systemctl.chmod(0o755)
        return self

    @staticmethod
    def _unmount(path):
        # Removing the directory must not remove mounted files. Interrupted processes may still be exiting.
        harness.wait_until(lambda: run("umount", path).returncode == 0, f"umount of {path}")

    def __exit__(self, *exception):
        self._stack.close()

    def __truediv__(self, path):
        return self.path / str(path).lstrip("/")

    def run(self, *argv, code=0):
        """Runs a command in this root. Returns its output."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        done = run("chroot", self.path, *argv, env=environment, timeout=300)
        equal(done.returncode, code, f"{argv}: {done.stdout.decode()}{done.stderr.decode()}")
        return done.stdout.decode()

    def install(self, *paths):
        """Installs package files. Their dependencies are installed already."""
        inside = []
        for path in paths:
            shutil.copy(path, self / "/root")
            inside.append(f"/root/{path.name}")
        return self.run("dpkg", "--force-confdef", "--force-confold", "--install", *inside)

    def systemctl_requests(self):
        """Returns the requests to systemctl since the last call, without queries and reloads."""
        log = self / "/systemctl.log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [line for line in lines if not re.search("is-enabled|is-active|daemon-reload", line)]


def newer(tmp, version):
    """Makes a newer version of the daemon's package, with another configuration."""
    tree = tmp / version
    run("dpkg-deb", "-R", package("buscapd"), tree)
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", f"Version: {version}", control.read_text(), flags=re.M))
    conf = tree / "etc/buscapd/buscapd.conf"
    conf.write_text(conf.read_text() + "# Changed.\n")
    path = tmp / f"buscapd_{version}_all.deb"
    equal(run("dpkg-deb", "--root-owner-group", "-b", tree, path).returncode, 0, "dpkg-deb")
    return path


def record(root):
    """Records like the service. Returns the files."""
    root.run("setpriv", "--reuid=buscapd", "--regid=buscap", "--clear-groups", "/usr/sbin/buscapd", "--once", "--source",
             "sim:rate=max,count=100000")
    return contents(root / "/var/lib/buscapd")


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def installed_units(root):
    """Returns the names of the installed units."""
    names = root.run("find", "/usr/lib/systemd/system/", "/lib/systemd/system/", "-name", "buscapd*", "-printf", "%f\\n")
    return " ".join(sorted(set(names.split())))


def owner(root, path):
    return root.run("stat", "-c", "%U:%G %a", path).strip()


def test_files_in_the_packages_have_the_owners_and_modes_of_debian():
    for name in NAMES:
        for line in run("dpkg-deb", "-c", package(name)).stdout.decode().splitlines():
            mode, who, *_, path = line.split()
            wanted = "drwxr-xr-x" if path.endswith("/") else "-rwxr-xr-x" if "bin/busc" in path else "-rw-r--r--"
            equal((mode, who), (wanted, "root/root"), path)
    equal(run("dpkg-deb", "-I", package("buscapd"), "conffiles").stdout, b"/etc/buscapd/buscapd.conf\n", "conffiles")
    for name in NAMES[1:]:
        assert b"conffiles" not in run("dpkg-deb", "-I", package(name)).stdout, name


def test_install_creates_user_and_group_and_starts_only_the_socket():
    with Root() as root:
        root.install(package("buscapd"), package("buscap-tools"))
        equal(root.run("getent", "passwd", "buscapd").split(":")[5:], ["/var/lib/buscapd", "/usr/sbin/nologin\n"], "user")
        equal(root.run("id", "-Gn", "buscapd"), "buscap\n", "its groups")
        equal(owner(root, "/run/buscapd"), "buscapd:buscap 755", "/run/buscapd")
        equal(owner(root, "/var/lib/buscapd"), "buscapd:buscap 750", "/var/lib/buscapd")
        equal(root.run("find", "/etc/systemd/system", "-name", "*buscap*"),
              "/etc/systemd/system/sockets.target.wants/buscapd.socket\n", "enabled")
        equal(root.systemctl_requests(), ["there: --quiet --system start buscapd.socket"], "requests")
        assert "configuration is valid" in root.run("/usr/sbin/buscapd", "--check-config")
        assert record(root), "recorded"
        root.run("sh", "-c", "buscap verify /var/lib/buscapd/*.byu.lz4")
        equal(installed_units(root), "buscapd.service buscapd.socket buscapd@.service buscapd@.socket", "units")


def test_the_timer_of_the_catalogue_is_off_until_enabled():
    def requests():
        return [re.sub("^gone:| --(quiet|system)", "", line).strip() for line in root.systemctl_requests()]

    with Root() as root:
        root.install(package("python3-buscap"))
        equal(requests(), [], "requests at the installation")
        equal(root.run("find", "/etc/systemd/system", "-name", "*buscap*"), "", "enabled")
        root.run("systemctl.real", "--root=/", "enable", "buscap-ship.timer")
        root.install(package("python3-buscap"))
        equal(requests(), ["try-restart buscap-ship.timer"], "requests at an upgrade")
        root.run("dpkg", "--remove", "python3-buscap")
        equal(requests(), ["stop buscap-ship.timer buscap-ship.service"], "requests at the removal")
        root.run("dpkg", "--purge", "python3-buscap")
        equal(root.run("find", "/etc/systemd/system", "-name", "*buscap*"), "", "left after the purge")


def test_the_packages_contain_the_files_of_make_install(tmp):
    """Compares names. In the packages, documents and manual pages are compressed, and Debian adds two files."""
    directories = [f"{name.upper()}DIR={run('pkg-config', f'--variable={key}', package).stdout.decode().strip()}"
                   for name, key, package in (("unit", "systemdsystemunitdir", "systemd"), ("udev", "udevdir", "udev"))]
    directories += ["ZSHDIR=/usr/share/zsh/vendor-completions", "PYTHONDIR=/usr/lib/python3/dist-packages"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = run("make", "-C", ROOT, "--no-print-directory", "install", f"DESTDIR={tmp}", "PREFIX=/usr", *directories,
               env=environment, timeout=900)
    equal(done.returncode, 0, done.stderr.decode())
    installed = {f"./{path.relative_to(tmp)}" for path in tmp.rglob("*") if not path.is_dir()}
    held = []
    for name in NAMES:
        files = [line.split()[-1] for line in run("dpkg-deb", "-c", package(name)).stdout.decode().splitlines()]
        added = {f"./usr/share/doc/{name}/{path}" for path in ("changelog.gz", "copyright")}
        assert added <= set(files), files
        held += [path.removesuffix(".gz") for path in files if not path.endswith("/") and path not in added]
    equal(sorted(held), sorted(installed), "files of the packages and of make install")


def test_the_python_package_reads_recordings_without_the_others():
    program = "import buscap; print([len(c.records) for s in buscap.segments('/root') for c in s.chunks if c.times.all()])"
    with Root() as root:
        root.install(package("buscapd"))
        record(root)
        root.run("sh", "-c", "cp /var/lib/buscapd/*.byu.lz4 /root")
        root.run("dpkg", "--purge", "buscapd")
        root.install(package("python3-buscap"))
        equal(root.run("python3", "-W", "error", "-c", program)[:9], "[87381, 1", "records in its chunks")
        root.run("dpkg", "--purge", "python3-buscap")
        equal(root.run("find", "/usr/lib/python3", "-name", "*buscap*"), "", "remaining files")


def test_shellcheck_finds_nothing_in_the_scripts():
    harness.need("shellcheck")
    scripts = sorted((ROOT / "debian").glob("*.p*"))
    equal(len(scripts), 4, "scripts")
    done = run("shellcheck", "-s", "sh", *scripts)
    equal((done.returncode, done.stdout.decode(), done.stderr.decode()), (0, "", ""))


def test_install_uses_an_existing_group_and_user():
    with Root() as root:
        root.run("groupadd", "--gid", "4242", "buscap")
        root.run("useradd", "--uid", "4343", "--gid", "4242", "--home-dir", "/var/lib/buscapd", "buscapd")
        root.install(package("buscapd"))
        equal(root.run("id", "buscapd"), "uid=4343(buscapd) gid=4242(buscap) groups=4242(buscap)\n", "the user")
        equal(owner(root, "/var/lib/buscapd"), "buscapd:buscap 750", "/var/lib/buscapd")
        assert record(root), "recorded"


def test_install_upgrade_and_purge_work_without_a_running_systemd(tmp):
    with Root() as root:
        (root / "/run/systemd/system").rmdir()
        root.install(package("buscapd"), package("buscap-tools"))
        equal(root.run("dpkg", "--verify", "buscapd", "buscap-tools"), "", "changed files")
        # Calls of dpkg after a failed step.
        script = "/var/lib/dpkg/info/buscapd."
        version = root.run("dpkg-query", "-f", "${Version}", "-W", "buscapd")
        for argv in (("postinst", "abort-upgrade", "9.0"), ("postinst", "abort-remove"),
                     ("postinst", "abort-deconfigure", "in-favour", "other", "1"), ("prerm", "upgrade", "9.0"),
                     ("prerm", "failed-upgrade", version), ("postrm", "failed-upgrade", version),
                     ("postrm", "abort-upgrade", version), ("postrm", "abort-install"), ("postrm", "disappear", "o", "1")):
            root.run(script + argv[0], *argv[1:])
        assert (root / "/var/lib/buscapd").is_dir() and (root / "/run/buscapd").is_dir(), "a directory is missing"
        root.install(newer(tmp, "9.0"))
        equal(root.systemctl_requests(), [], "requests to systemctl")
        root.run("dpkg", "--purge", "buscapd", "buscap-tools")
        equal(root.systemctl_requests(), [], "requests to systemctl")


def test_an_unchanged_configuration_is_replaced_by_an_upgrade(tmp):
    with Root() as root:
        root.install(package("buscapd"))
        root.install(newer(tmp, "9.0"))
        assert (root / "/etc/buscapd/buscapd.conf").read_text().endswith("# Changed.\n")


def test_an_upgrade_over_an_edited_configuration_needs_the_option_of_install_md(tmp):
    option = re.search(r"Dpkg::Options::=(\S+)", (ROOT / "docs/install.md").read_text())[1]
    with Root() as root:
        root.install(package("buscapd"))
        conf = root / "/etc/buscapd/buscapd.conf"
        conf.write_text(conf.read_text() + "# Edited.\n")
        path = newer(tmp, "9.0")
        shutil.copy(path, root / "/root")
        assert "end of file on stdin at conffile prompt" in root.run("sh", "-c", f"dpkg --install /root/{path.name} 2>&1", code=1)
        root.run("dpkg", option, "--configure", "-a")
        assert conf.read_text().endswith("# Edited.\n")
        assert (root / "/etc/buscapd/buscapd.conf.dpkg-dist").read_text().endswith("# Changed.\n")


def test_purge_without_recordings_leaves_nothing():
    with Root() as root:
        root.install(package("buscapd"), package("buscap-tools"))
        root.run("dpkg", "--purge", "buscapd", "buscap-tools")
        equal(root.run("find", "/etc", "/usr", "/var/lib", "-name", "*buscap*", "!", "-path", "/var/lib/dpkg/*"), "", "remaining files")
