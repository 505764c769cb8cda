"""The packages in a Debian of their own: installed, upgraded, removed and purged as root in a root directory that
mmdebstrap makes (kept in build/roots/, for the next time). Without a running systemd: what the packages' scripts
would have it do is written down instead. PACKAGES is their directory, SUITE the
Debian's name, this machine's by default."""

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
    pytest.exit("the packages are tried in a root directory of their own: that takes root", 1)

PACKAGES = pathlib.Path(os.environ["PACKAGES"]).resolve()

# Stands in for systemd: the socket is enabled, nothing runs. What only makes links is done.
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
    """The apt sources of this machine, for the suite."""
    here = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    for path in ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"):
        path = pathlib.Path(path)
        if path.exists() and path.read_text().strip():
            text = re.sub(rf"\b{here}\b", SUITE, path.read_text())
            return path.suffix or ".list", text
    raise AssertionError("this machine has neither sources.list.d/debian.sources nor sources.list")


def base():
    """A minimal Debian with udev and what the packages depend on, as a directory. Made once."""
    depends = b",".join(run("dpkg-deb", "-f", package(name), "Depends").stdout for name in ("buscapd", "buscap-tools"))
    # Of "a | b" the first; versions are apt's business.
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
    """A fresh Debian in a directory, gone at the end: a layer over the base, or else a copy of it."""

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
        # What is mounted must not be taken away with the directory. What was interrupted may be ending still.
        harness.wait_until(lambda: run("umount", path).returncode == 0, f"umount of {path}")

    def __exit__(self, *exception):
        self._stack.close()

    def __truediv__(self, path):
        return self.path / str(path).lstrip("/")

    def run(self, *argv, code=0):
        """Runs a command in it. Returns what it printed."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        done = run("chroot", self.path, *argv, env=environment, timeout=300)
        equal(done.returncode, code, f"{argv}: {done.stdout.decode()}{done.stderr.decode()}")
        return done.stdout.decode()

    def install(self, *paths):
        """Installs packages from files outside. Their dependencies are there."""
        inside = []
        for path in paths:
            shutil.copy(path, self / "/root")
            inside.append(f"/root/{path.name}")
        return self.run("dpkg", "--force-confdef", "--force-confold", "--install", *inside)

    def asked_of_systemd(self):
        """What was asked of systemd since the last time, without questions and reloads."""
        log = self / "/systemctl.log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [line for line in lines if not re.search("is-enabled|is-active|daemon-reload", line)]


def newer(tmp, version):
    """The package of the daemon as the next version, with another configuration in it."""
    tree = tmp / version
    run("dpkg-deb", "-R", package("buscapd"), tree)
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", f"Version: {version}", control.read_text(), flags=re.M))
    conf = tree / "etc/buscapd/buscapd.conf"
    conf.write_text(conf.read_text() + "# More is said.\n")
    path = tmp / f"buscapd_{version}_all.deb"
    equal(run("dpkg-deb", "--root-owner-group", "-b", tree, path).returncode, 0, "dpkg-deb")
    return path


def record(root):
    """Records as the service would, and returns the files."""
    root.run("setpriv", "--reuid=buscapd", "--regid=buscap", "--clear-groups", "/usr/sbin/buscapd", "--once", "--source",
             "sim:rate=max,count=100000")
    return contents(root / "/var/lib/buscapd")


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def installed_units(root):
    """The names of the units where systemd looks for them."""
    names = root.run("find", "/usr/lib/systemd/system/", "/lib/systemd/system/", "-name", "buscapd*", "-printf", "%f\\n")
    return " ".join(sorted(set(names.split())))


def owner(root, path):
    return root.run("stat", "-c", "%U:%G %a", path).strip()


def test_what_the_packages_hold_has_the_owners_and_modes_of_debian():
    for name in ("buscapd", "buscap-tools"):
        for line in run("dpkg-deb", "-c", package(name)).stdout.decode().splitlines():
            mode, who, *_, path = line.split()
            wanted = "drwxr-xr-x" if path.endswith("/") else "-rwxr-xr-x" if "bin/busc" in path else "-rw-r--r--"
            equal((mode, who), (wanted, "root/root"), path)
    equal(run("dpkg-deb", "-I", package("buscapd"), "conffiles").stdout, b"/etc/buscapd/buscapd.conf\n", "conffiles")
    assert b"conffiles" not in run("dpkg-deb", "-I", package("buscap-tools")).stdout


def test_install_makes_user_and_group_and_starts_the_socket_alone():
    with Root() as root:
        root.install(package("buscapd"), package("buscap-tools"))
        equal(root.run("getent", "passwd", "buscapd").split(":")[5:], ["/var/lib/buscapd", "/usr/sbin/nologin\n"], "user")
        equal(root.run("id", "-Gn", "buscapd"), "buscap\n", "its groups")
        equal(owner(root, "/run/buscapd"), "buscapd:buscap 755", "/run/buscapd")
        equal(owner(root, "/var/lib/buscapd"), "buscapd:buscap 750", "/var/lib/buscapd")
        equal(root.run("find", "/etc/systemd/system", "-name", "*buscap*"),
              "/etc/systemd/system/sockets.target.wants/buscapd.socket\n", "enabled")
        equal(root.asked_of_systemd(), ["there: --quiet --system start buscapd.socket"], "asked")
        assert "configuration is valid" in root.run("/usr/sbin/buscapd", "--check-config")
        assert record(root), "recorded"
        root.run("sh", "-c", "buscap verify /var/lib/buscapd/*.byu.lz4")
        equal(installed_units(root), "buscapd.service buscapd.socket buscapd@.service buscapd@.socket", "units")


def test_the_packages_hold_what_make_install_installs_and_what_debian_adds(tmp):
    """By name; documents and manual pages are compressed in the packages, and Debian has its own two files."""
    directories = [f"{name.upper()}DIR={run('pkg-config', f'--variable={key}', package).stdout.decode().strip()}"
                   for name, key, package in (("unit", "systemdsystemunitdir", "systemd"), ("udev", "udevdir", "udev"))]
    directories.append("ZSHDIR=/usr/share/zsh/vendor-completions")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = run("make", "-C", ROOT, "--no-print-directory", "install", f"DESTDIR={tmp}", "PREFIX=/usr", *directories,
               env=environment, timeout=900)
    equal(done.returncode, 0, done.stderr.decode())
    installed = {f"./{path.relative_to(tmp)}" for path in tmp.rglob("*") if not path.is_dir()}
    held = []
    for name in ("buscapd", "buscap-tools"):
        files = [line.split()[-1] for line in run("dpkg-deb", "-c", package(name)).stdout.decode().splitlines()]
        added = {f"./usr/share/doc/{name}/{path}" for path in ("changelog.gz", "copyright")}
        assert added <= set(files), files
        held += [path.removesuffix(".gz") for path in files if not path.endswith("/") and path not in added]
    equal(sorted(held), sorted(installed), "files of both packages, and of make install")


def test_the_scripts_are_good_shell():
    harness.need("/usr/bin/shellcheck")
    scripts = sorted((ROOT / "debian").glob("buscapd.p*"))
    equal(len(scripts), 3, "scripts")
    done = run("shellcheck", "-s", "sh", *scripts)
    equal(done.stdout.decode(), "")


def test_install_takes_a_group_and_a_user_that_are_there():
    with Root() as root:
        root.run("groupadd", "--gid", "4242", "buscap")
        root.run("useradd", "--uid", "4343", "--gid", "4242", "--home-dir", "/var/lib/buscapd", "buscapd")
        root.install(package("buscapd"))
        equal(root.run("id", "buscapd"), "uid=4343(buscapd) gid=4242(buscap) groups=4242(buscap)\n", "the user")
        equal(owner(root, "/var/lib/buscapd"), "buscapd:buscap 750", "/var/lib/buscapd")
        assert record(root), "recorded"


def test_without_a_running_systemd_it_installs_upgrades_and_goes(tmp):
    with Root() as root:
        (root / "/run/systemd/system").rmdir()
        root.install(package("buscapd"), package("buscap-tools"))
        equal(root.run("dpkg", "--verify", "buscapd", "buscap-tools"), "", "files that are not as they were packed")
        # What dpkg calls when a step of its own has failed.
        script = "/var/lib/dpkg/info/buscapd."
        version = root.run("dpkg-query", "-f", "${Version}", "-W", "buscapd")
        for argv in (("postinst", "abort-upgrade", "9.0"), ("postinst", "abort-remove"),
                     ("postinst", "abort-deconfigure", "in-favour", "other", "1"), ("prerm", "upgrade", "9.0"),
                     ("prerm", "failed-upgrade", version), ("postrm", "failed-upgrade", version),
                     ("postrm", "abort-upgrade", version), ("postrm", "abort-install"), ("postrm", "disappear", "o", "1")):
            root.run(script + argv[0], *argv[1:])
        assert (root / "/var/lib/buscapd").is_dir() and (root / "/run/buscapd").is_dir(), "a directory is gone"
        root.install(newer(tmp, "9.0"))
        equal(root.asked_of_systemd(), [], "asked of a systemd that doesn't run")
        root.run("dpkg", "--purge", "buscapd", "buscap-tools")
        equal(root.asked_of_systemd(), [], "asked of a systemd that doesn't run")


def test_upgrade_keeps_what_was_changed_and_restarts_only_what_runs(tmp):
    with Root() as root:
        root.install(package("buscapd"), package("buscap-tools"))
        recorded = record(root)
        changed = "[source]\nsource = sim\n"
        (root / "/etc/buscapd/buscapd.conf").write_text(changed)
        (root / "/etc/buscapd/conf.d/site.conf").write_text("[space]\nkeep_free = 1M\n")
        root.asked_of_systemd()
        root.install(newer(tmp, "9.0"))
        equal(root.run("dpkg-query", "-f", "${Version}", "-W", "buscapd"), "9.0", "version")
        equal((root / "/etc/buscapd/buscapd.conf").read_text(), changed, "configuration")
        equal(contents(root / "/var/lib/buscapd"), recorded, "recordings")
        asked = root.asked_of_systemd()
        assert "there: try-restart buscapd.service" in asked and "there: try-restart buscapd@*.service" in asked, asked
        for line in asked:
            assert re.search(r"try-restart \S+service$|start buscapd.socket$", line), f"not to be asked: {line}"


def test_an_unchanged_configuration_is_replaced_by_an_upgrade(tmp):
    with Root() as root:
        root.install(package("buscapd"))
        root.install(newer(tmp, "9.0"))
        assert (root / "/etc/buscapd/buscapd.conf").read_text().endswith("# More is said.\n")


def test_remove_stops_first_and_keeps_configuration_and_recordings_and_so_does_purge_the_latter():
    with Root() as root:
        root.install(package("buscapd"), package("buscap-tools"))
        recorded = record(root)
        (root / "/etc/buscapd/boards/A1.conf").write_text("[source]\nsource = usb\n")
        root.asked_of_systemd()

        root.run("dpkg", "--remove", "buscapd", "buscap-tools")
        asked = root.asked_of_systemd()
        equal(asked[0], "there: stop buscapd.socket buscapd.service buscapd@*.socket buscapd@*.service", "asked first")
        assert not any("start" in line for line in asked), asked
        assert not (root / "/usr/sbin/buscapd").exists() and not (root / "/usr/bin/buscap").exists()
        assert (root / "/etc/buscapd/buscapd.conf").exists()
        equal(contents(root / "/var/lib/buscapd"), recorded, "recordings after remove")
        assert not (root / "/run/buscapd").exists(), "/run/buscapd is left"

        root.run("dpkg", "--purge", "buscapd", "buscap-tools")
        equal(sorted(str(path) for path in (root / "/etc/buscapd").rglob("*.conf")),
              [str(root / "/etc/buscapd/boards/A1.conf")], "left of the configuration")
        equal(contents(root / "/var/lib/buscapd"), recorded, "recordings after purge")
        equal(root.run("find", "/etc/systemd", "/usr", "/var/lib/systemd", "-name", "*buscap*"), "", "left")

        # The user is the recordings' owner still, and finds them when the package comes back.
        root.install(package("buscapd"))
        assert len(record(root)) > len(recorded), "no more is recorded"


def test_purge_of_what_never_recorded_leaves_nothing():
    with Root() as root:
        root.install(package("buscapd"), package("buscap-tools"))
        root.run("dpkg", "--purge", "buscapd", "buscap-tools")
        equal(root.run("find", "/etc", "/usr", "/var/lib", "-name", "*buscap*", "!", "-path", "/var/lib/dpkg/*"), "", "left")
