"""Checks the results of the program `probe`, in the service's sandbox and outside it."""

from harness import equal

# World-writable directories, so that only the sandbox can refuse access. And an address outside loopback.
PREPARE = """set -e
install -m 755 /mnt/probe /usr/local/lib/machine/probe
for folder in /etc /usr /var/lib/other /opt /run /home/lab /boot; do
    mkdir -p $folder
    case $folder in /var/lib/other) chmod 777 $folder ;; *) mkdir -p $folder/open; chmod 777 $folder/open ;; esac
done
chmod 755 /home/lab
echo secret >/home/lab/open/secret
echo read >/etc/open/readable
mknod -m 666 /dev/open c 1 1
perl -e 'use Socket; socket(my $s, AF_INET, SOCK_DGRAM, 0) or die;
    ioctl($s, 0x8916, pack("a16 S n a4 x8", "lo:1", AF_INET, 0, inet_aton("10.9.8.7"))) or die "10.9.8.7: $!"'
"""

ALLOWED = ("write /var/lib/buscapd", "write /run/buscapd", "write /tmp", "write /var/tmp", "open /dev/null",
           "open /etc/open/readable", "socket unix", "socket netlink", "end")
NETWORK = ("socket inet", "socket inet6", "tcp 127.0.0.1:9477", "tcp 10.9.8.7:9477", "udp 127.0.0.1:9",
           "udp 10.9.8.7:9")
# Also refused for root outside the sandbox, but with another error: the kernel has evaluated the request.
ROOT_ERRORS = {"init_module": "ENOEXEC", "tcp 127.0.0.1:9477": "ECONNREFUSED", "tcp 10.9.8.7:9477": "ECONNREFUSED"}
FACTS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Uid", "Gid", "Groups")
NO = ("EPERM", "EACCES", "EROFS", "ENOENT", "EAFNOSUPPORT")


def read(text):
    """Returns {name: result}."""
    return dict(line.split("\t", 1) for line in text.splitlines())


def _check_facts(found):
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        equal(found[name], "0" * 16, name)
    equal((found["NoNewPrivs"], found["Seccomp"]), ("1", "2"), "no new privileges, a filter of system calls")
    assert "0" not in found["Uid"].split() + found["Gid"].split() + found["Groups"].split(), found


def _check_tried(found, names):
    wrong = {name: found[name] for name in names
             if (found[name] != "ok" if name in ALLOWED else found[name] not in NO)}
    assert not wrong, f"wrong results in the sandbox: {wrong}"


def check(found, free):
    """In the sandbox only the allowed operations succeed; outside, all of them."""
    _check_facts(found)
    names = [name for name in found if name not in FACTS]
    assert len(names) > 50 and "end" in names, found
    wrong = {name: free.get(name) for name in names if free.get(name) != ROOT_ERRORS.get(name, "ok")}
    assert not wrong, f"wrong results outside, as root: {wrong}"
    _check_tried(found, names)


def check_network(found):
    """With metrics.conf: Internet sockets and loopback addresses, but no other addresses."""
    _check_facts(found)
    _check_tried(found, [name for name in found if name not in FACTS and name not in NETWORK])
    got = {name: found[name] for name in NETWORK}
    equal(got.pop("tcp 10.9.8.7:9477") in ("EPERM", "ETIMEDOUT"), True, "TCP to another address")
    equal(got, {"socket inet": "ok", "socket inet6": "ok", "tcp 127.0.0.1:9477": "ok", "udp 127.0.0.1:9": "ok",
                "udp 10.9.8.7:9": "EPERM"}, "the network")


def check_whole_network(found):
    """With network.conf: the same network as outside the sandbox, but nothing else."""
    _check_facts(found)
    _check_tried(found, [name for name in found if name not in FACTS and name not in NETWORK])
    equal({name: found[name] for name in NETWORK}, {name: ROOT_ERRORS.get(name, "ok") for name in NETWORK},
          "the network")
