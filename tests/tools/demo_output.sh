#!/bin/sh
# Functions of the demos: say prints a heading; show prints a command, runs it, and sets failed=1 if it fails.

if [ -t 1 ]; then
	bold=$(printf '\033[1m') plain=$(printf '\033[0m')
else
	bold= plain=
fi

say() {
	printf '\n%s== %s%s\n' "$bold" "$*" "$plain"
}

failed=0
show() {
	printf '$ %s\n' "$*"
	"$@" || failed=1
}
