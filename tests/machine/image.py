"""The virtual machine's image: a small Debian on ext4, a kernel and an initrd, built once and cached.

    find(depends)    returns the Image with these packages, from the cache or newly built

It has the host's Debian release, installed from the sources and with the settings in the host's /etc/apt. It is
stored in $XDG_CACHE_HOME/buscapd (~/.cache/buscapd); its name depends on the versions of all its packages and on how
it is built. Older images are removed. It contains nothing of the project, which is installed in the running machine.
"""

import dataclasses
import fcntl
import hashlib
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
GUEST = HERE / "guest"  # files copied over the root
# Enough for deb-systemd-invoke and the maintainer scripts; ssh for `buscap find --hosts`.
PACKAGES = ("systemd", "systemd-sysv", "udev", "kmod", "openssh-server", "openssh-client")
SIZE = "3G"  # of the file system, a sparse file
BOOT_MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")
# The kernel modules to include; the others would only make it larger.
MODULE_FOLDERS = ("drivers/usb/core", "drivers/usb/common", "drivers/usb/host", "drivers/char", "drivers/virtio",
                  "drivers/block", "arch/x86/crypto", "crypto", "lib", "fs/ext4", "fs/jbd2", "fs/mbcache.ko",
                  "fs/autofs", "fs/configfs", "drivers/usb/gadget")


class ImageError(Exception):
    """The image can't be built, for a reason that the user can fix."""


@dataclasses.dataclass
class Image:
    kernel: pathlib.Path
    initrd: pathlib.Path
    root: pathlib.Path
    name: str


def _run(*argv, **options):
    """Returns a program's standard output as text."""
    try:
        done = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, timeout=900, **options)
    except FileNotFoundError as why:
        raise ImageError(f"{argv[0]} is not installed: make test-machine installs it") from why
    if done.returncode != 0:
        errors = "\n".join(done.stderr.decode(errors="replace").splitlines()[-15:])
        raise ImageError(f"{' '.join(map(str, argv[:3]))} ... failed with exit code {done.returncode}:\n{errors}")
    return done.stdout.decode()


def _as_root(*argv):
    return _run(*([] if os.geteuid() == 0 else ["sudo", "-n"]), *argv)


# ---- contents


def _codename():
    text = pathlib.Path("/etc/os-release").read_text(encoding="utf-8")
    found = re.search(r"^VERSION_CODENAME=(\S+)", text, re.M)
    if found is None:
        raise ImageError("/etc/os-release has no VERSION_CODENAME: the image can only be built on Debian")
    return found[1].strip('"')


def _sources(codename):
    """Returns the host's source files for its own release."""
    apt = pathlib.Path("/etc/apt")
    files = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*.list")),
             *sorted((apt / "sources.list.d").glob("*.sources"))]
    files = [path for path in files if path.exists() and re.search(rf"^[^#]*\b{codename}\b", path.read_text(), re.M)]
    if not files:
        raise ImageError(f"/etc/apt has no sources for {codename}")
    return files


def _versions(packages):
    """Returns the kernel's package, and name and version of all packages to install, including dependencies."""
    kernel = re.search(r"^ +Depends: (linux-image-\S+)", _run("apt-cache", "depends", "linux-image-amd64"), re.M)
    if kernel is None:
        raise ImageError("apt does not know linux-image-amd64")
    plan = _run("apt-get", "-s", "-o", "Dir::State::status=/dev/null", "-o", "APT::Install-Recommends=false",
                "install", *packages)
    version = re.search(r"^ +Candidate: (\S+)", _run("apt-cache", "policy", kernel[1]), re.M)
    found = sorted(re.findall(r"^Inst (\S+) \((\S+)", plan, re.M))
    return kernel[1], [*found, (kernel[1], version[1])]


def _recipe():
    """Returns everything that determines the image, except the packages."""
    paths = [HERE / "image.py", *sorted(path for path in GUEST.rglob("*") if path.is_file())]
    return b"".join(str(path.relative_to(HERE)).encode() + b"\0" + path.read_bytes() for path in paths)


# ---- building


def _make_tar(work, packages, codename):
    """Builds the root file system as a tar archive. mmdebstrap does not read the host's apt settings by itself."""
    settings = work / "apt.conf"
    settings.write_text(_run("apt-config", "dump", "--no-empty", "--format", '%F "%v";%n', "Acquire"))
    _run("mmdebstrap", "--quiet", "--variant=apt", f"--include={','.join(packages)}", f"--aptopt={settings}",
         "--aptopt=APT::Install-Recommends \"false\"", "--dpkgopt=path-exclude=/usr/share/doc/*",
         "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
         codename, work / "root.tar", *_sources(codename), env={**os.environ, "TMPDIR": str(work)})


def _unpack_kernel(work, package):
    """Unpacks the kernel. Returns the directory of its modules."""
    _run("apt-get", "-q", "download", package, cwd=work)
    _run("dpkg-deb", "-x", next(work.glob("linux-image-*.deb")), work / "kernel")
    modules = next((work / "kernel").glob("**/lib/modules/*"))
    _run("depmod", "-b", modules.parents[2], modules.name)
    return modules


def _dependencies(modules):
    """Returns, for each module path, the paths of its dependencies in load order."""
    table = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, needs = line.partition(":")
        table[path] = needs.split()[::-1]
    return table


def _make_initrd(work, modules):
    root = work / "initrd"
    for folder in ("bin", "dev", "proc", "root", "modules"):
        (root / folder).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    table = _dependencies(modules)
    order = []
    for name in BOOT_MODULES:
        paths = [path for path in table if re.fullmatch(rf"{name}\.ko(\.xz)?", pathlib.Path(path).name)]
        for path in paths:
            order += [p for p in [*table[path], path] if p not in order]
    for i, path in enumerate(order):
        data = (modules / path).read_bytes()
        data = lzma.decompress(data) if path.endswith(".xz") else data
        (root / "modules" / f"{i:02}-{pathlib.Path(path).name.removesuffix('.xz')}").write_bytes(data)
    init = root / "init"
    init.write_text("#!/bin/busybox sh\n"
                    "/bin/busybox mount -t devtmpfs dev /dev\n"
                    "for module in /modules/*; do /bin/busybox insmod $module; done\n"
                    "/bin/busybox mount -t ext4 /dev/vda /root || exec /bin/busybox poweroff -f\n"
                    "/bin/busybox umount /dev\n"
                    "exec /bin/busybox switch_root /root /sbin/init\n")
    init.chmod(0o755)
    names = "\0".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    with open(work / "initrd.cpio", "wb") as out:
        subprocess.run(["cpio", "--quiet", "-0", "-o", "-H", "newc"], input=names.encode(), stdout=out, cwd=root,
                       check=True)


def _add_modules(work, modules):
    """Adds the modules that the machine uses to the tree that is copied over the root."""
    to = work / "over" / "lib/modules" / modules.name
    for name in MODULE_FOLDERS:
        path = modules / "kernel" / name
        if path.is_dir():
            shutil.copytree(path, to / "kernel" / name, dirs_exist_ok=True)
        elif path.exists():
            (to / "kernel" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to / "kernel" / name)
    for path in modules.glob("modules.*"):
        shutil.copy(path, to)
    _run("depmod", "-b", work / "over", modules.name)
    # /lib is a symbolic link in Debian and must remain one.
    shutil.move(work / "over/lib", work / "over/usr/lib")


def _make_root(work):
    """Builds the file system, with all files owned by root."""
    script = ('set -e; cd "$1"; mkdir tree; tar -C tree -xpf root.tar; '
              'tar -C over --owner=0 --group=0 --mode=u+rwX,go+rX,go-w -c . | '
              'tar -C tree -xp --keep-directory-symlink; '
              f'mkfs.ext4 -q -F -E lazy_itable_init=1,lazy_journal_init=1 -d tree root.ext4 {SIZE}; rm -rf tree')
    _run(*([] if os.geteuid() == 0 else ["fakeroot"]), "sh", "-c", script, "sh", work)


def _make(folder, packages, kernel):
    folder.mkdir(parents=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="machine-", dir=folder))
    os.chmod(work, 0o755)
    try:
        modules = _unpack_kernel(work, kernel)
        _make_initrd(work, modules)
        _make_tar(work, packages, _codename())
        shutil.copytree(GUEST, work / "over", symlinks=True)
        _add_modules(work, modules)
        _make_root(work)
        shutil.move(next((work / "kernel/boot").glob("vmlinuz-*")), folder / "vmlinuz")
        shutil.move(work / "initrd.cpio", folder / "initrd")
        shutil.move(work / "root.ext4", folder / "root.ext4")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _image(folder):
    return Image(folder / "vmlinuz", folder / "initrd", folder / "root.ext4", folder.name)


def _resolve(packages):
    """Like _versions(), but updates a missing or outdated package list."""
    try:
        return _versions(packages)
    except ImageError:
        _as_root("apt-get", "-q", "update")
        return _versions(packages)


def find(depends):
    """Returns the image with these packages, named as in a Depends field, in addition to PACKAGES. Prints a message if
    it has to be built. Raises ImageError."""
    packages = [*PACKAGES, *depends]
    if _run("dpkg", "--print-architecture").strip() != "amd64":
        raise ImageError("the host must be amd64, like the machine")
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "buscapd"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs must not build it at once
        kernel, versions = _resolve(packages)
        key = hashlib.sha256(_recipe() + repr((packages, versions)).encode()).hexdigest()[:16]
        folder = cache / f"machine-{key}"
        if not (folder / "root.ext4").exists():
            print(f"building the machine's image ({len(versions)} packages), about 90 s", flush=True)
            for old in cache.glob("machine-*"):
                shutil.rmtree(old)
            try:
                _make(folder, packages, kernel)
            except ImageError:
                # The package list may be older than the archive.
                shutil.rmtree(folder)
                _as_root("apt-get", "-q", "update")
                kernel, versions = _versions(packages)
                key = hashlib.sha256(_recipe() + repr((packages, versions)).encode()).hexdigest()[:16]
                folder = cache / f"machine-{key}"
                _make(folder, packages, kernel)
        return _image(folder)
