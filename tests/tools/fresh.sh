#!/bin/sh
# fresh.sh [--short] RELEASE...
# Tries the last commit on bare Debian systems: roots from mmdebstrap with only git, make, gcc and libc6-dev (and
# certificates, for an https mirror), without /etc/hosts. Each of these is the first command that is typed in a root of
# its own: make test, make demo, make deb, and plain make, which stops with one line, before make demo. None may leave
# anything in the tree or in /tmp. Then, in another root, the packages are installed, record, are removed and purged.
#
# --short, a step of `make ci`: no make test, and nothing after make deb; compiled without optimization. If no root can be
# made, the reason is printed, and the exit code is 77.
#
# Needs root and the right to mount. Mounts are in private namespaces and disappear with their processes. The log of each
# step is build/fresh/RELEASE-STEP.log; the packages are in build/fresh/RELEASE-deb.
# ONLY=WORDS runs only those tests, as in make check. MIRROR=URI names a Debian mirror, if apt's sources name none.
# KEEP=1 keeps the roots. ~/.cache/buscapd keeps downloaded packages, and the root of each release until that changes.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${ONLY:=}" "${MIRROR:=}" "${KEEP:=}"
here=$PWD/build/fresh
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/buscapd
cache_mb=1000 # of packages per release
keyrings=/usr/share/keyrings
job=
roots=
is_short=
if [ "${1-}" = --short ]; then
	is_short=1
	shift
fi

fail() {
	echo "make check-fresh: $*" >&2
	exit 1
}

# What keeps this machine from making a root is no fault of a change.
impossible() {
	[ -n "$is_short" ] || fail "$*"
	echo "no bare root: $*"
	exit 77
}

remove_root() { # DIRECTORY
	if grep -qF " $1/" /proc/self/mountinfo; then
		echo "$1: something is mounted below it; unmount that, then remove the directory" >&2
		return
	fi
	# Killed processes may still be exiting.
	rm -rf --one-file-system "$1" 2>/dev/null || { sleep 1 && rm -rf --one-file-system "$1"; }
}

clean_up() {
	if [ -n "$job" ]; then
		kill -KILL "$job" 2>/dev/null
		wait "$job" 2>/dev/null
	fi
	[ -n "$KEEP" ] || for root in $roots; do
		remove_root "$root"
	done
}

# This host's apt sources, for another release.
sources() { # RELEASE
	option="[signed-by=$keyrings/debian-archive-keyring.gpg]"
	if [ -n "$MIRROR" ]; then
		echo "deb $option $MIRROR $1 main"
		return
	fi
	# Before the first apt-get update a target has no origin, and apt prints the format's name.
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' |
		sort -u | awk -v host="$(. /etc/os-release && echo "${VERSION_CODENAME-}")" -v to="$1" -v option="$option" '
			$3 == "main" && ($4 == "Debian" || $4 == "$(ORIGIN)") &&
			($2 == host || $2 == host "-updates" || $2 == host "-security") {
				print "deb", option, $1, to substr($2, length(host) + 1), $3
			}'
}

# Proxies and similar settings.
apt_options() {
	echo '// copied from the host'
	apt-config dump --format '%f "%v";%n' Acquire |
		grep -iE '^Acquire::(https?::|Check-Valid-Until |Check-Date |Retries )' | grep -viE 'auto-?detect'
}

# The steps. Each runs in its own process, which becomes unshare, so that killing it kills everything below it.

make_base() {
	fetch="mkdir -p \"\$1/var/cache/apt/archives\" && cp -l '$debs/'*.deb \"\$1/var/cache/apt/archives/\" || :"
	keep="cp -ln \"\$1\"/var/cache/apt/archives/*.deb '$debs/'"
	exec unshare --mount --pid --fork --kill-child --mount-proc --propagation private \
		mmdebstrap --mode=root --variant=minbase --include=git,make,gcc,libc6-dev,ca-certificates \
		--aptopt="$here/apt.conf" --dpkgopt=force-unsafe-io --setup-hook="$fetch" --customize-hook="$keep" \
		--skip=download/empty,essential/unlink,cleanup/apt/lists "$release" "$base.new" "$here/$release.list"
}

# shellcheck disable=SC2016
inside() { # ROOT COMMANDS
	exec unshare --mount --pid --fork --kill-child --propagation private sh -eu -c '
		mount -t proc proc "$1/proc"
		mount -t sysfs -o ro sysfs "$1/sys" || echo "sysfs cannot be mounted; continuing without it"
		mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$1/dev/pts"
		mount --bind "$1/dev/pts/ptmx" "$1/dev/ptmx"
		mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
		mkdir -p "$1/var/cache/apt/archives"
		mount --bind "$2" "$1/var/cache/apt/archives"
		exec chroot "$1" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
			LC_ALL=C.UTF-8 TERM=xterm DEBIAN_FRONTEND=noninteractive \
			ONLY="$4" $5 sh -eux -c "$3"' inside "$1" "$debs" "$2" "$ONLY" "${is_short:+CFLAGS=-O0 DEB_BUILD_OPTIONS=noopt}"
}

# As a newcomer: clone, enter, type. The name of a folder may have a space.
tree='/srv/bus capture'
typed() { # COMMANDS
	inside "$root" "
git clone -q -c advice.detachedHead=false /root/buscapd.bundle '$tree'
cd '$tree'
test ! -e /etc/hosts
$1
test -z \"\$(git status --porcelain)\"
test -z \"\$(ls -A /tmp)\""
}

plain='
! make >/root/said 2>&1
cat /root/said
test "$(wc -l </root/said)" = 1
grep -F "libraries are missing: run \"make deps\"" /root/said'

install='
apt-get update
apt-get install -y /root/debs/*.deb
test -x /usr/sbin/buscapd
test -x /usr/bin/buscap
getent passwd buscapd
getent group buscap'

# As the service's user.
use='
cd /
buscapd --version
buscap --version
buscapd --check-config -c /etc/buscapd/buscapd.conf
buscap sim -s 7 -n 1000000 -O byu -o /tmp/sent.byu
install -d -m 750 -o buscapd -g buscap /var/lib/buscapd
buscap sim -s 7 -n 1000000 -O bcp1 |
	setpriv --reuid=buscapd --regid=buscap --clear-groups buscapd --once --source file:- -o /var/lib/buscapd
buscap verify /var/lib/buscapd/*.byu.lz4
buscap dump --records 0-3 /var/lib/buscapd/*.byu.lz4
buscap convert -O byu -o /tmp/recorded.byu /var/lib/buscapd/*.byu.lz4
python3 -c "import buscap
chunks = [chunk for segment in buscap.segments(\"/var/lib/buscapd\") for chunk in segment.chunks]
assert b\"\".join(chunk.records.tobytes() for chunk in chunks) == open(\"/tmp/sent.byu\", \"rb\").read()"
cmp /tmp/sent.byu /tmp/recorded.byu'

remove='
apt-get remove -y buscapd buscap-tools python3-buscap
test ! -e /usr/sbin/buscapd
test ! -e /usr/bin/buscap
test -e /etc/buscapd/buscapd.conf
ls /var/lib/buscapd/*.byu.lz4'

purge='
apt-get purge -y buscapd buscap-tools python3-buscap
test ! -e /etc/buscapd/buscapd.conf
test -z "$(dpkg-query --show --showformat "\${Package} " buscapd buscap-tools python3-buscap 2>/dev/null)"
ls /var/lib/buscapd/*.byu.lz4
getent passwd buscapd'

step() { # NAME COMMAND...
	name=$1
	shift
	log=$here/$release-$name.log
	began=$(date +%s)
	"$@" >"$log" 2>&1 </dev/null &
	job=$!
	wait $job
	status=$?
	job=
	took=$(($(date +%s) - began))
	if [ $status = 0 ]; then
		printf '  %-10s %-8s %4d s\n' "$release" "$name" $took
		passed=$((passed + 1))
		return 0
	fi
	printf '  %-10s %-8s %4d s, FAILED (exit code %d); the end of %s:\n' "$release" "$name" $took $status "$log"
	tail -n 60 "$log"
	failed=$((failed + 1))
	return 1
}

mb_of() { # DIRECTORY
	du -sm "$1" | cut -f 1
}

# Each run has its own package directory, because apt locks it; most files are hard links.
fetch_cached_packages() {
	if [ "$(mb_of "$kept")" -gt $cache_mb ]; then
		rm -f "$kept"/*.deb
	fi
	rm -rf "$debs"
	mkdir -p "$debs"
	cp -l "$kept"/*.deb "$debs" 2>/dev/null || cp "$kept"/*.deb "$debs" 2>/dev/null || :
}

cache_packages() {
	for package in "$debs"/*.deb; do
		name=${package##*/}
		[ ! -e "$kept/$name" ] || continue
		ln "$package" "$kept/$name" 2>/dev/null ||
			{ cp "$package" "$kept/new.$$" && mv "$kept/new.$$" "$kept/$name"; }
	done
	rm -rf "$debs"
}

# The lists of packages say when the release has changed.
release_of() { # ROOT
	cat "$1"/var/lib/apt/lists/*_dists_"$release"_InRelease
}

# The root that is copied, in the cache, is made again when the release or the mirror changes.
base_is_current() {
	cmp -s "$here/$release.list" "$base.list" || return
	before=$(release_of "$base" | cksum)
	step update inside "$base" 'apt-get update -o APT::Update::Error-Mode=any' || impossible "apt-get update failed: $log"
	[ "$before" = "$(release_of "$base" | cksum)" ]
}

# Without a network there is no root; anything else that fails is a fault.
no_base() {
	grep -qE 'Temporary failure|Could not (resolve|connect)|Unable to connect|Failed to fetch' "$log" || return
	impossible "mmdebstrap got no packages: $log"
}

update_base() {
	exec 8>"$base.lock"
	flock 8 # another clone may be using it
	if ! base_is_current; then
		rm -f "$base.list"
		remove_root "$base"
		remove_root "$base.new"
		step root make_base || no_base || return
		mv "$base.new" "$base" && cp "$here/$release.list" "$base.list" || return
	fi
	flock --shared 8
}

fresh_root() { # ROOT
	remove_root "$1"
	cp -a --reflink=auto "$base" "$1" && find "$1/tmp" -mindepth 1 -delete && cp "$here/buscapd.bundle" "$1/root"
}

steps() {
	update_base || return
	for first in test demo plain deb; do
		[ $first != test ] || [ -z "$is_short" ] || continue
		fresh_root "$root" || return
		case $first in
		plain) step plain typed "$plain
make demo" ;;
		deb) step deb typed 'make deb' || return ;;
		*) step $first typed "make $first" ;;
		esac
	done
	[ -z "$is_short" ] || return 0
	step units inside "$root" "cd '$tree' && make units"
	rm -rf "$here/$release-deb"
	fresh_root "$clean" || return
	flock --unlock 8
	mkdir "$here/$release-deb" "$clean/root/debs" || return
	cp "$root$tree"/build/deb/*_* "$here/$release-deb/" || return
	cp "$here/$release-deb"/*.deb "$clean/root/debs/" || return
	step install inside "$clean" "$install" || return
	step use inside "$clean" "$use" || return
	step remove inside "$clean" "$remove" || return
	step purge inside "$clean" "$purge"
}

try() { # RELEASE
	release=$1
	root=$here/$release
	clean=$here/$release-clean
	base=$cache/root-$release
	debs=$here/$release-debs
	kept=$cache/debs-$release
	passed=0
	failed=0
	started=$(date +%s)
	if ! ls "$keyrings/debian-archive-$release"-stable.* >/dev/null 2>&1; then
		impossible "$keyrings has no keys of $release: install a newer debian-archive-keyring"
	fi
	sources "$release" >"$here/$release.list"
	[ -s "$here/$release.list" ] ||
		impossible "apt has no Debian source here: name a mirror with MIRROR="
	mkdir -p "$kept" || exit 1
	fetch_cached_packages
	had_mb=$(mb_of "$debs")
	roots="$root $clean $base.new"
	remove_root "$root"
	remove_root "$clean"
	steps || [ $failed != 0 ] || failed=1
	fetched_mb=$(($(mb_of "$debs") - had_mb))
	cache_packages
	total="$total$release: $passed passed, $failed failed, $(($(date +%s) - started)) s, $fetched_mb MB of packages fetched
"
	[ "$failed" = 0 ] || any_failed=1
	[ -n "$KEEP" ] || { remove_root "$root" && remove_root "$clean"; }
}

[ $# != 0 ] || fail "name a release: bookworm, trixie"
[ "$(id -u)" = 0 ] || impossible "it needs root: sudo make check-fresh"
unshare --mount true 2>/dev/null || impossible "root may not mount here: use a real or virtual machine"
[ ! -e "$(git rev-parse --git-dir)/shallow" ] || impossible "this clone is shallow: run git fetch --unshallow"
mkdir -p "$here" || exit 1
exec 9>"$here/lock"
flock -n 9 || fail "it is already running in this clone: wait, or use another clone"
apt_options >"$here/apt.conf"
git -c safe.directory="$PWD" bundle create --quiet "$here/buscapd.bundle" HEAD || exit 1
total=
any_failed=0
trap clean_up EXIT
trap 'exit 1' HUP INT TERM
for one in "$@"; do
	try "$one"
done
printf '%s' "$total"
exit $any_failed
