#!/bin/sh
# run.sh TEST_PROGRAM...
# Runs the cmocka programs and then the Python tests, counts both and ends with one line of totals.
# BUILD is where the programs are; ONLY=PATTERN runs those whose name has it.
set -u
cd "$(dirname "$0")/.." || exit 1
: "${BUILD:=build}" "${PYTHON:=python3}" "${ONLY:=}"
export BUILD
passed=0
failed=0
skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

run() { # NAME COMMAND...
	name=$1
	shift
	case $name in *"$ONLY"*) ;; *) return ;; esac
	"$@" >"$log" 2>&1
	status=$?
	ok=$(grep -c '^\[       OK \]' "$log")
	bad=$(grep -E '^\[  FAILED  \] [a-zA-Z0-9_]+$' "$log" | sort -u | wc -l)
	skip=$(grep -iE '^\[ *SKIPPED *\] [a-zA-Z0-9_]+$' "$log" | sort -u | wc -l)
	if [ $status != 0 ] && [ "$bad" = 0 ]; then
		bad=1 # it crashed, or said so by its exit code alone
	fi
	grep -E '^(skipped|  \|)' "$log"
	printf '%-28s %4d passed' "$name" "$ok"
	[ "$skip" = 0 ] || printf ', %d skipped' "$skip"
	if [ "$bad" != 0 ]; then
		printf ', %d FAILED (exit %d)\n' "$bad" $status
		cat "$log"
	else
		printf '\n'
	fi
	passed=$((passed + ok))
	failed=$((failed + bad))
	skipped=$((skipped + skip))
}

for program in "$@"; do
	run "$(basename "$program")" "$program"
done
for script in tests/test_*.py; do
	[ -e "$script" ] && run "$(basename "$script")" "$PYTHON" "$script"
done
if [ $skipped = 0 ]; then
	echo "$passed passed, $failed failed"
else
	echo "$passed passed, $failed failed, $skipped skipped"
fi
[ $failed = 0 ] && [ $passed != 0 ]
