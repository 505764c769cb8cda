#!/bin/sh
# demo.sh BUILD
# Shows the main job to a person: the daemon records the simulated bus for a few seconds, reports its status and is
# stopped; then buscap examines the recording.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$1
out=demo/$(date -u +%Y%m%dT%H%M%SZ)
mkdir -p "$out" || exit 1
socket=$out/buscapd.sock
segments=$out/segments

. tests/tools/demo_output.sh

say "record the simulated bus: 4 million samples a second, a new segment every second"
printf '$ %s\n' "$build/buscapd --source sim:rate=4M,agents=2,loss=0.001 -o $segments -b duration:1 -a duration:60 --socket $socket &"
"$build/buscapd" --source sim:rate=4M,agents=2,loss=0.001 -o "$segments" -b duration:1 -a duration:60 --socket "$socket" &
daemon=$!
trap 'kill $daemon 2>/dev/null' EXIT
trap 'exit 1' HUP INT PIPE TERM
sleep 3

say "show its status"
show "$build/buscap" status --wait --socket "$socket"
show "$build/buscap" mark --socket "$socket" "a mark set by hand"

say "what is on the bus: buscap top, here without a terminal"
echo "$ $build/buscap top --socket $socket | head -n 24"
"$build/buscap" top --socket "$socket" | head -n 24

say "the same for programs: HTTP over the Unix socket"
echo "$ curl --unix-socket $socket http://localhost/metrics | grep received"
curl --silent --show-error --unix-socket "$socket" http://localhost/metrics | grep received

say "stop it: it writes what it has and seals the segment"
show kill -TERM $daemon
wait $daemon
status=$?
trap - EXIT
echo "exit code $status (4: samples were lost; the simulated board was asked to lose some)"

say "the segments"
show ls -l "$segments"
set -- "$segments"/*.byu.lz4
first=$1

say "they are plain lz4 files of BYU records"
echo "$ cat $segments/*.byu.lz4 | lz4 -dc | head -c 24 | od -An -tx1"
cat "$segments"/*.byu.lz4 | lz4 -dc 2>/dev/null | head -c 24 | od -An -tx1

say "the first records: address, type, size, attr, processor, delta"
show "$build/buscap" dump --records 0-11 "$first"

say "where the board lost samples, the recording has a gap"
echo "$ $build/buscap dump $segments/*.byu.lz4 | grep -m 1 -B 2 -A 2 '^# gap'"
"$build/buscap" dump "$@" | grep -m 1 -B 2 -A 2 '^# gap'

say "check every checksum"
show "$build/buscap" verify "$segments"/*.byu.lz4

say "describe the first segment"
show "$build/buscap" info "$first"

say "look at it in a browser, until Ctrl-C: $build/buscap web --map pc $segments"
say "everything is in $out; rm -r demo removes it"
[ $failed = 0 ] && { [ $status = 0 ] || [ $status = 4 ]; }
