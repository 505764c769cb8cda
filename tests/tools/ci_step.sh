#!/bin/sh
# ci_step.sh STAMP COMMAND...    runs a step of `make ci`: output to STAMP.log; if it passes, the stamp;
#                                exit code 77: it was skipped, the last line of its output says why: STAMP.skipped
# ci_step.sh --failed FOLDER     prints the end of the log of each step that failed
set -u

if [ "$1" = --failed ]; then
	for log in "$2"/*.log; do
		[ -e "${log%.log}" ] || [ -e "${log%.log}.skipped" ] || { echo "==== FAILED: $(basename "$log" .log), the end of $log:" && tail -n 60 "$log"; }
	done
	exit 0
fi

stamp=$1
shift
case ${MAKEFLAGS%% *} in
*n*) exec "$@" ;; # make -n
esac
mkdir -p "${stamp%/*}"
rm -f "$stamp" "$stamp.skipped"
touch "$stamp.new" # a file that changes from now on makes the step run again
began=$(date +%s)
"$@" >"$stamp.log" 2>&1 </dev/null
status=$?
if [ $status = 77 ]; then
	tail -n 1 "$stamp.log" >"$stamp.skipped"
	echo "skipped $(basename "$stamp"): $(cat "$stamp.skipped")"
elif [ $status = 0 ]; then
	times >"$stamp.times" # the CPU time of this shell, then of its children: 0m1.5s 0m0.2s
	cpu=$(awk -F '[ms ]+' 'END { print int(60 * ($1 + $3) + $2 + $4) }' "$stamp.times")
	rm "$stamp.times"
	mv "$stamp.new" "$stamp"
	echo "ok      $(basename "$stamp"): $(($(date +%s) - began)) s, CPU $cpu s"
else
	echo "FAILED  $(basename "$stamp"): $(($(date +%s) - began)) s: $stamp.log"
	exit 1
fi
