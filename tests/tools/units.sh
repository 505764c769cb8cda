#!/bin/sh
# units.sh DIR
# Checks what `make install PREFIX=/usr` has put below DIR for systemd and udev: the units load without warnings, also
# with each drop-in, and the services' exposure level is at most 1.0, or 1.1 with the network. Does not need a running
# systemd.
set -u
dir=$1
failed=0

fail() {
	echo "$*" >&2
	failed=1
}

# Runs a command that must succeed without output.
silent() {
	said=$("$@" 2>&1)
	status=$?
	[ $status = 0 ] && [ -z "$said" ] && return
	fail "$*: exit code $status, output: $said"
}

# Verifying a unit loads the units that it names: systemd's own.
units=$dir/usr/lib/systemd/system
for path in /usr/lib/systemd/system /lib/systemd/system; do
	[ ! -e $path/sockets.target ] || from=$path
done
cp -R --no-clobber "${from:?systemd is not installed here}/." "$units"
mkdir -p "$dir/bin"
cp /bin/sh "$dir/bin/sh"
verify() {
	silent systemd-analyze --root="$dir" --man=no verify \
		buscapd.service buscapd.socket 'buscapd@A1.service' 'buscapd@A1.socket' buscap-ship.service buscap-ship.timer
}
verify

for unit in buscapd.service 'buscapd@A1.service' buscap-ship.service; do
	limit=10
	[ $unit != buscap-ship.service ] || limit=11
	said=$(systemd-analyze --root="$dir" --offline=yes --threshold=$limit --no-pager security "$unit" 2>&1) || {
		fail "$said"
		continue
	}
	echo "$said" | sed -n "s/^.*Overall exposure level for \(.*\): \([0-9.]*\).*$/\1: exposure \2/p"
done

for drop_in in metrics network; do
	for unit in buscapd.service buscapd@.service; do
		mkdir -p "$units/$unit.d"
		cp "$dir/usr/share/buscapd/$drop_in.conf" "$units/$unit.d/"
	done
	verify
	rm -r "$units/buscapd.service.d" "$units/buscapd@.service.d"
done

rule=$dir/usr/lib/udev/rules.d/60-buscapd.rules
if udevadm verify --help >/dev/null 2>&1; then
	said=$(udevadm verify --resolve-names=never "$rule" 2>&1) || fail "$said"
else
	echo "skipped: udevadm verify: it needs systemd 254"
fi

# The catalog of messages.
catalog=$dir/usr/lib/systemd/catalog/buscapd.catalog
silent journalctl --root="$dir" --update-catalog
[ "$(journalctl --root="$dir" --list-catalog | grep -c ' buscapd: ')" = "$(grep -c '^-- ' "$catalog")" ] ||
	fail "$catalog: not all entries are in the catalog"

# The user, the group and the directories, in a separate root.
if [ "$(id -u)" = 0 ]; then
	root=$dir/root
	mkdir -p "$root/etc" "$root/run" "$root/usr/lib" "$root/var/lib"
	cp -R "$dir/usr/lib/sysusers.d" "$dir/usr/lib/tmpfiles.d" "$root/usr/lib/"
	systemd-sysusers --root="$root" buscapd.conf >/dev/null 2>&1 || fail "systemd-sysusers failed"
	silent systemd-tmpfiles --root="$root" --create buscapd.conf
	user=$(sed -n 's/^buscapd:x:\([0-9]*:[0-9]*\):.*:\/var\/lib\/buscapd:\/usr\/sbin\/nologin$/\1/p' "$root/etc/passwd")
	group=$(sed -n 's/^buscap:x:\([0-9]*\):.*/\1/p' "$root/etc/group")
	owner=$(stat -c %u:%g "$root/run/buscapd" "$root/var/lib/buscapd" | sort -u)
	[ -n "$user" ] && [ "${user#*:}" = "$group" ] && [ "$owner" = "$user" ] ||
		fail "user buscapd is '$user', group buscap '$group', and /run/buscapd and /var/lib/buscapd belong to '$owner'"
else
	echo "skipped: user, group and /run/buscapd: needs root"
fi
[ $failed = 0 ] && echo "units: no errors, systemd $(systemd-analyze --version | sed -n '1s/^systemd \([0-9]*\).*/\1/p')"
exit $failed
