#!/bin/sh
# changed.sh [SINCE]                        prints the product's sources that changed, or include a header that did
# changed.sh --machine [SINCE] COMMAND...   runs the command if what the machine tests has changed
# changed.sh --fleet [SINCE] COMMAND...     the same for the tests of the catalogue
# SINCE is a commit: by default where this branch left origin/main, otherwise the newest commit that is more than a day
# old.
set -eu
cd "$(dirname "$0")/../.."
most=40
layers='formats capture daemon cli'
machine='debian systemd mk/install.mk daemon/main capture/usb tests/board tests/machine tests/tools/gadget.sh'
fleet='python docs/fleet.md docs/clickhouse.md formats/codec/byu_printer.c tests/fleet'

since() {
	head=$(git rev-parse HEAD)
	base=$(git merge-base origin/main HEAD 2>/dev/null || :)
	[ -n "$base" ] && [ "$base" != "$head" ] || base=$(git rev-list -1 --before='1 day ago' HEAD)
	[ -n "$base" ] && [ "$base" != "$head" ] || base=$(git rev-parse -q --verify HEAD~1 || git hash-object -t tree /dev/null)
	echo "$base"
}

tested=
case ${1-} in
--machine) tested=$machine ;;
--fleet) tested=$fleet ;;
esac
[ -z "$tested" ] || shift
if git rev-parse -q --verify "${1-}^{commit}" >/dev/null; then
	commit=$1
	shift
else
	commit=$(since)
fi

if [ -n "$tested" ]; then
	# shellcheck disable=SC2086
	if git diff --quiet "$commit" -- $tested; then
		echo "unchanged since $commit: $tested"
		exit 0
	fi
	exec "$@"
fi

# shellcheck disable=SC2086
changed=$(git diff --name-only --diff-filter=d "$commit" -- $layers)
# shellcheck disable=SC2086
sources=$(git ls-files -- $layers | grep '\.c$')
for file in $changed; do
	# shellcheck disable=SC2086
	case $file in
	*.c) echo "1 $file" ;;
	*.h) grep -lF "#include \"$file\"" $sources | sed 's/^/2 /' ;;
	esac
done | sort | awk -v most=$most '!seen[$2]++ && ++n <= most { print $2 }
	END { if (n > most) print most " of " n " sources are looked at; make lint looks at all" > "/dev/stderr" }'
