#!/bin/sh
# fuzz.sh FOLDER SECONDS: runs each fuzz target in the folder for so long, from seeds made by the programs
# themselves. What a target finds is left there.
set -u
cd "$(dirname "$0")/.." || exit 1
folder=$1
seconds=$2
seeds=$folder/seeds
failed=0
rm -rf "$seeds"
mkdir -p "$seeds/bcp1" "$seeds/segment" "$seeds/config" "$seeds/usb" "$seeds/raw"

for seed in 1 2 3; do
	{ printf '\007'; build/buscap sim --seed $seed --count 200 --loss 0.2 --corrupt 0.2 -O bcp1; } >"$seeds/bcp1/$seed"
	build/buscap sim --seed $seed --count 50 -O raw6 >"$seeds/segment/raw6-$seed"
	build/buscap sim --seed $seed --count 50 -O byu >"$seeds/segment/byu-$seed"
	build/buscap sim --seed $seed --count 60 -O byu | lz4 -q >"$seeds/segment/lz4-$seed"
	build/buscapd --once --source sim:rate=max,count=300,seed=$seed,loss=0.5 -o "$seeds/out-$seed" >/dev/null 2>&1
	cat "$seeds/out-$seed"/*.byu.lz4 >"$seeds/segment/segment-$seed"
	build/buscapd --once --source sim:rate=max,count=300,seed=$seed,loss=0.5 -o "$seeds/raw-$seed" --set output.keep_raw=yes >/dev/null 2>&1
	{ printf '\001'; cat "$seeds/raw-$seed"/*.bcp1.lz4; } >"$seeds/raw/$seed"
done
cat >"$seeds/config/all" <<-'EOF'
	[source]
	source = sim:rate=1M,count=5,seed=7,agents=2,loss=0.5,corrupt=0
	speed = 0.5
	[output]
	dir = /tmp
	label = a.b_c-1
	[rotation]
	filesize = 256M
	duration = 1.5h
	interval = 60
	files = 5
	[stop]
	records = 7
	[space]
	max_use = 1T
	keep_free = 1G
	max_age = 30d
	[pipeline]
	buffer = 64M
	workers = 2
	flush = 100ms
	[mapping]
	invalid = keep
	size = v1.0
	attr.D_WRITE = 3
	[log]
	level = debug
EOF
printf '[source]\nsource = usb:serial=A1,wait=1s\n[usb]\nid = 1209:0001\nlink = ftdi\n' >"$seeds/config/usb"
printf '[source]\nsource = file:a,b,format=raw6,clock_hz=66000000\n' >"$seeds/config/file"

# One vendor-specific interface with a bulk IN endpoint of 512; an answer to GET_INFO.
printf '\001\001\001\000\000\001\201\002\002\000' >"$seeds/usb/board"
{ printf 'x\001\000\000\000\200\025\357\003'; head -c 55 /dev/zero; } >"$seeds/usb/info"

for target in bcp1 segment config usb raw; do
	mkdir -p "$folder/corpus-$target"
	if "$folder/fuzz_$target" -max_total_time="$seconds" -max_len=8192 -timeout=20 -rss_limit_mb=2048 \
		-artifact_prefix="$folder/$target-" -print_final_stats=1 \
		"$folder/corpus-$target" "$seeds/$target" >"$folder/$target.log" 2>&1; then
		runs=$(awk '/number_of_executed_units/ { print $2 }' "$folder/$target.log")
		echo "fuzz $target: $runs inputs in $seconds s, nothing found"
	else
		echo "fuzz $target: FAILED; its input is in $folder/"
		tail -n 30 "$folder/$target.log"
		failed=1
	fi
done
exit $failed
