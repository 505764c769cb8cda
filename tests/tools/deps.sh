#!/bin/sh
# deps.sh LIBRARY:DEPENDENCY[,DEPENDENCY]... -- COMMAND:DEPENDENCY... -- MODULE:DEPENDENCY...
# Checks for each library (by pkg-config name or the path of a file), command and Python module, and installs the
# Debian packages of those that are missing; without apt-get, names them. A dependency is written as in debian/control.
# build/FILE:PACKAGE copies that file from the package, without installing it.
set -u

kind=library
missing=
packages=
files=
for pair in "$@"; do
	if [ "$pair" = -- ]; then
		[ $kind = library ] && kind=command || kind=module
		continue
	fi
	name=${pair%%:*}
	case $kind$name in
	library*/*) [ -e "$name" ] && continue ;;
	library*) pkg-config --exists "$name" 2>/dev/null && continue ;;
	command*) command -v "$name" >/dev/null 2>&1 && continue ;;
	module*) /usr/bin/python3 -c "import $name" 2>/dev/null && continue ;;
	esac
	missing="$missing $name"
	case $name in
	build/*) files="$files $pair" ;;
	*) packages=${packages:+$packages, }${pair#*:} ;;
	esac
done
[ -z "$missing" ] && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
	echo "missing (pkg-config names, files, commands, Python modules):$missing" >&2
	echo "there is no apt-get here: install them and run make again; D3=PATH is where d3.min.js is" >&2
	exit 1
fi
as_root=
if [ -n "$packages" ] && [ "$(id -u)" != 0 ]; then
	as_root=sudo
	if ! command -v sudo >/dev/null 2>&1; then
		echo "missing:$missing; as root: apt-get update && apt-get satisfy --no-install-recommends '$packages'" >&2
		exit 1
	fi
fi

export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
exec 9<"$0"
flock 9 # apt-get update fails while another one runs
place=$(mktemp -d) || exit 1
log=$place/log
export TMPDIR="$place" # apt leaves files
watcher=
trap '[ -z "$watcher" ] || kill $watcher; rm -rf "$place"' EXIT
trap 'exit 1' HUP INT TERM

# Prints how far apt is: each second on a terminal, each ten seconds elsewhere.
watch() {
	seconds=0
	while sleep 1 && kill -0 $$; do
		seconds=$((seconds + 1))
		[ -t 1 ] || [ $((seconds % 10)) = 0 ] || continue
		state=$(awk '/ newly installed, / { all = $1 + $3; got = 0 }
			/^Get:/ { got++ } /^Unpacking / { unpacked++ } /^Setting up / { done++ }
			END {
				if (unpacked == all && all) print done + 0 " of " all " packages set up"
				else if (unpacked) print unpacked " of " all " packages unpacked"
				else if (all) print got + 0 " of " all " packages downloaded"
			}' "$log")
		if [ -t 1 ]; then
			printf '\r%s\033[K' "$state"
		elif [ -n "$state" ]; then
			echo "$state"
		fi
	done
}

install() {
	set -- satisfy --no-install-recommends "$packages"
	apt-get -o Debug::NoLocking=1 --assume-no "$@" 2>/dev/null | awk '
		/ newly installed, / { all = $1 + $3 }
		/^Need to get / { sub("/.*", "", $5); get = $4 " " $5 }
		/^After this operation, / { disk = $4 " " $5 }
		END { if (all) print "installing " all " packages: " get " to download, " disk " on disk" }'
	watch 9<&- &
	watcher=$!
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -y "$@" >>"$log" 2>&1 </dev/null
	status=$?
	kill $watcher
	watcher=
	[ ! -t 1 ] || printf '\r\033[K'
	return $status
}

copy() { # FILE PACKAGE
	echo "copying ${1##*/} from the package $2"
	(cd "$place" && apt-get download "$2") >>"$log" 2>&1 &&
		dpkg-deb --fsys-tarfile "$place/$2"_*.deb | tar -xO --wildcards "*/${1##*/}" >"$place/file" 2>>"$log" &&
		mkdir -p "${1%/*}" && mv "$place/file" "$1"
}

all() {
	if [ -n "$packages" ]; then
		echo "looking for packages"
		$as_root apt-get update >"$log" 2>&1 && install || return
	elif [ "$(id -u)" = 0 ]; then
		apt-get update >"$log" 2>&1 || return # others can download with the lists that are there
	fi
	for pair in $files; do
		copy "${pair%%:*}" "${pair#*:}" || return
	done
}

if ! all; then
	{ grep -E '^(E|W|Err):' "$log" || tail -n 12 "$log"; } | head -n 12 >&2
	if [ -n "$packages" ]; then
		echo "apt-get failed: repair that, or install $packages in another way, and run make again" >&2
	else
		echo "apt-get failed: repair that, or name the file from node-d3: make D3=PATH" >&2
	fi
	exit 1
fi
