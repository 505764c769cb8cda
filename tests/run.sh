#!/bin/sh
# run.sh TEST_PROGRAM...
# Runs the cmocka programs and the Python tests, counts both and ends with one line of totals. Tests mostly
# wait, so there are two more at a time than there are cores, but under the thread sanitizer; those that want the
# machine to themselves follow.
# BUILD is where the programs are; ONLY="WORD..." runs those whose name has one of the words.
set -u
cd "$(dirname "$0")/.." || exit 1
: "${BUILD:=build}" "${PYTHON:=python3}" "${ONLY:=}"
export BUILD
work=$(mktemp -d)
rows=
trap 'kill $rows 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

run() { # NAME COMMAND...
	name=$1
	shift
	start=$(date +%s)
	"$@" >"$log" 2>&1
	status=$?
	took=$(($(date +%s) - start))
	ok=$(grep -c '^\[       OK \]' "$log")
	bad=$(grep -E '^\[  FAILED  \] [a-zA-Z0-9_]+$' "$log" | sort -u | wc -l)
	skip=$(grep -iE '^\[ *SKIPPED *\] [a-zA-Z0-9_]+$' "$log" | sort -u | wc -l)
	if [ $status != 0 ] && [ "$bad" = 0 ]; then
		bad=1 # it crashed, or said so by its exit code alone
	fi
	{
		grep -E '^(skipped|  \|)' "$log"
		printf '%-28s %4d passed' "$name" "$ok"
		[ "$skip" = 0 ] || printf ', %d skipped' "$skip"
		[ $took -lt 10 ] || printf ', %d s' $took
		if [ "$bad" != 0 ]; then
			printf ', %d FAILED (exit %d)\n' "$bad" $status
			cat "$log"
		else
			printf '\n'
		fi
	} >"$log.told"
	cat "$log.told" # at once, not mixed with another row's
	passed=$((passed + ok))
	failed=$((failed + bad))
	skipped=$((skipped + skip))
}

# The next test of the list that all rows read from; they share its offset.
next() {
	flock 9
	IFS= read -r test <&8
	has_one=$?
	flock -u 9
	return $has_one
}

# Runs what is left of the list. What it counted is then in $work/ROW.sum.
row() { # ROW
	exec 9>"$work/lock" # its own: a lock is shared by whoever shares the opening
	log=$work/$1.log
	sum=$work/$1.sum
	passed=0
	failed=0
	skipped=0
	while next; do
		case $test in
		*.py) run "$(basename "$test")" "$PYTHON" "$test" ;;
		*) run "$(basename "$test")" "$test" ;;
		esac
	done
	echo "$passed $failed $skipped" >"$sum"
}

# Runs a list of tests, in so many rows.
run_list() { # LIST ROWS
	exec 8<"$1"
	expected=$((expected + $2))
	rows=
	for i in $(seq "$2"); do
		(row "${1##*/}-$i") &
		rows="$rows $!"
	done
	for pid in $rows; do
		wait "$pid"
	done
	rows=
}

is_wanted() { # NAME
	for word in ${ONLY:-test_}; do
		case $1 in *"$word"*) return 0 ;; esac
	done
	return 1
}

# Of the Python tests those that put the daemon's threads to work: the rest would only take long under the thread
# sanitizer. No name here has a blank.
threaded="test_api test_clients test_crash test_daemon test_disk test_events test_hook test_keep_raw test_record \
	test_service test_stop test_triggers test_usb test_usb_faults"
has_threads() { # TEST
	case $1 in *.py) ;; *) return 0 ;; esac
	for threaded_name in $threaded; do
		[ "$(basename "$1" .py)" != "$threaded_name" ] || return 0
	done
	return 1
}

for test in tests/test_*.py "$@"; do
	is_wanted "$(basename "$test")" || continue
	case $BUILD in */thread) has_threads "$test" || continue ;; esac
	case $(basename "$test" .py) in
	test_clients | test_usb) echo "$test" >>"$work/alone" ;;
	*) echo "$test" >>"$work/beside" ;;
	esac
done
expected=0
rows_beside=$(nproc)
case $BUILD in */thread) ;; *) rows_beside=$((rows_beside + 2)) ;; esac
[ ! -e "$work/beside" ] || run_list "$work/beside" "$rows_beside"
[ ! -e "$work/alone" ] || run_list "$work/alone" 1

cat "$work"/*.sum >"$work/sums" 2>/dev/null
read -r ended passed failed skipped <<END
$(awk '{ p += $1; f += $2; s += $3 } END { print NR, p + 0, f + 0, s + 0 }' "$work/sums")
END
if [ "$ended" != $expected ]; then
	echo "$((expected - ended)) of $expected rows of tests did not come to their end"
	failed=$((failed + 1))
fi
if [ "$skipped" = 0 ]; then
	echo "$passed passed, $failed failed"
else
	echo "$passed passed, $failed failed, $skipped skipped"
fi
[ "$failed" = 0 ] && [ "$passed" != 0 ]
