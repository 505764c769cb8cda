#!/bin/sh
# Functions of the demos: say prints a heading; show prints a command, then runs it.

if [ -t 1 ]; then
	bold=$(printf '\033[1m') plain=$(printf '\033[0m')
else
	bold= plain=
fi

say() {
	printf '\n%s== %s%s\n' "$bold" "$*" "$plain"
}

show() {
	printf '$ %s\n' "$*"
	"$@"
}
