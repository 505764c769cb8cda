#!/bin/sh
# deps.sh LIBRARY:PACKAGE[,PACKAGE]... -- COMMAND:PACKAGE[,PACKAGE]... -- MODULE:PACKAGE[,PACKAGE]...
# Checks for each library (by pkg-config name or the path of a file), command and Python module, and installs the
# Debian packages of those that are missing; without apt-get, names them. Package A/B is A, or B in releases without A.
set -u

kind=library
missing=
packages=
for pair in "$@"; do
	if [ "$pair" = -- ]; then
		[ $kind = library ] && kind=command || kind=module
		continue
	fi
	name=${pair%%:*}
	case $kind$name in
	library/*) [ -e "$name" ] && continue ;;
	library*) pkg-config --exists "$name" 2>/dev/null && continue ;;
	command*) command -v "$name" >/dev/null 2>&1 && continue ;;
	module*) /usr/bin/python3 -c "import $name" 2>/dev/null && continue ;;
	esac
	missing="$missing $name"
	packages="$packages $(echo "${pair#*:}" | tr , ' ')"
done
[ -z "$missing" ] && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
	echo "missing (pkg-config names, commands, Python modules):$missing" >&2
	echo "there is no apt-get here: install them and run make again" >&2
	exit 1
fi
as_root=
if [ "$(id -u)" != 0 ]; then
	as_root=sudo
	if ! command -v sudo >/dev/null 2>&1; then
		echo "missing:$missing; as root: apt-get install$packages" >&2
		exit 1
	fi
fi
echo "installing what is missing:$packages"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
# Chooses between A and B, once apt has its lists.
choose() {
	for package in "$@"; do
		first=${package%%/*}
		if [ "$first" = "$package" ] || apt-cache show "$first" >/dev/null 2>&1; then
			echo "$first"
		else
			echo "${package#*/}"
		fi
	done
}

install() {
	flock 9 # apt-get update fails while another one runs
	$as_root apt-get update || return
	# shellcheck disable=SC2086,SC2046
	$as_root apt-get install -y --no-install-recommends $(choose $packages)
}

if ! install >"$log" 2>&1 9<"$0"; then
	tail -n 15 "$log" >&2
	rm -f "$log"
	echo "apt-get failed; missing:$missing" >&2
	exit 1
fi
rm -f "$log"
