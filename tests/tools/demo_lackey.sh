#!/bin/sh
# demo_lackey.sh BUILD
# Records a real program, for a person to watch: valgrind traces the memory accesses of ls, buscap turns them into
# what a capture board would send, and the daemon records that.
set -u

cd "$(dirname "$0")/../.." || exit 1
build=$1
out=demo/lackey-$(date -u +%Y%m%dT%H%M%SZ)
mkdir -p "$out" || exit 1
segments=$out/segments

. tests/tools/demo_output.sh

say "valgrind's lackey traces the memory accesses of ls: fetch, load, store, modify"
echo "$ valgrind --tool=lackey --trace-mem=yes --log-fd=9 ls 9>&1 >/dev/null | head -n 2000 | grep '^[I ]' | head -n 6"
valgrind --tool=lackey --trace-mem=yes --log-fd=9 ls 9>&1 >/dev/null 2>/dev/null | head -n 2000 | grep '^[I ]' | head -n 6

say "convert them to bus cycles and record those: pages get physical addresses on first use, accesses are split into 8 bytes"
cat <<END
$ valgrind --tool=lackey --trace-mem=yes --log-fd=9 ls 9>&1 >/dev/null |
      $build/buscap convert -I lackey -O bcp1:map=pages,seed=1 |
      $build/buscapd --once --source file:- -o $segments
END
valgrind --tool=lackey --trace-mem=yes --log-fd=9 ls 9>&1 >/dev/null 2>/dev/null |
	"$build/buscap" convert -I lackey -O bcp1:map=pages,seed=1 |
	"$build/buscapd" --once --source file:- -o "$segments"
status=$?
echo "exit code $status"
[ $status = 0 ] || exit 1

say "the recording"
show ls -l "$segments"
set -- "$segments"/*.byu.lz4
show "$build/buscap" info "$1"

say "the first records: address, type, size, attr, processor, delta"
show "$build/buscap" dump --records 0-11 "$1"

say "what the program did"
show "$build/buscap" stats "$@"

say "check every checksum"
show "$build/buscap" verify "$@"

say "everything is in $out; rm -r demo removes it"
[ $failed = 0 ]
