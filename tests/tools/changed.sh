#!/bin/sh
# changed.sh [SINCE]                        prints the product's sources that changed, or include a header that did
# changed.sh --machine [SINCE] COMMAND...   runs the command if what the machine tests has changed
# SINCE is a commit: by default where this branch left origin/main; in a fresh clone, the last one before the last day.
set -u
cd "$(dirname "$0")/../.." || exit 1
most=40
layers='formats capture daemon cli'
machine='debian systemd mk/install.mk daemon/main tests/machine'

since() {
	head=$(git rev-parse HEAD)
	base=$(git merge-base origin/main HEAD 2>/dev/null)
	[ -n "$base" ] && [ "$base" != "$head" ] || base=$(git rev-list -1 --before='1 day ago' HEAD)
	[ -n "$base" ] || base=$(git rev-list --max-parents=0 HEAD | tail -n 1)
	echo "$base"
}

if [ "${1-}" = --machine ]; then
	shift
	commit=
	git rev-parse -q --verify "$1^{commit}" >/dev/null && commit=$1 && shift
	: "${commit:=$(since)}"
	# shellcheck disable=SC2086
	if git diff --quiet "$commit" -- $machine; then
		echo "unchanged since $(git log -1 --format='%h, %cd' --date=short "$commit"): $machine"
		exit 0
	fi
	exec "$@"
fi

commit=${1:-$(since)}
# shellcheck disable=SC2086
git diff --name-only --diff-filter=d "$commit" -- $layers | {
	while read -r file; do
		case $file in
		*.c) echo "1 $file" ;;
		*.h) grep -lF "#include \"$file\"" $(git ls-files $layers | grep '\.c$') | sed 's/^/2 /' ;;
		esac
	done
} | sort | awk '!seen[$2]++ { print $2 }' | head -n $most
