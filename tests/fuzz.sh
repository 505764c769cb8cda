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
mkdir -p "$seeds/bcp1" "$seeds/segment" "$seeds/config" "$seeds/usb" "$seeds/raw" "$seeds/tarmac"

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

cat >"$seeds/tarmac/instructions" <<-'EOF'
	Tarmac Text Rev 3t
	0 clk cpu0 E 10001848 00000001 CoreEvent_RESET
	1 clk 0 IT (1) 00000004 3c080001 A svc : lui t0,0x1
	2 clk cpu1 IS (2) 00008000:000000008000_NS,000000009000_NS 1afb T svc_ns : SUBNE r3,r7,r3
	3 cs IT (00000000004d6eb0) 54000001 O  -Z-_- :   b.ne 0x4d
	4 cyc IT (00000100:0000000a) 00000100     4801 T16 LDR      r0,[pc,#4]  ; [0x108]
	 5 ns  ES  (000001a4:03a06a01) A svc:     CCFAIL MOVEQ    r6,#1
	6 tic ES (10000b58:--------) T thrd_s:
EOF
cat >"$seeds/tarmac/accesses" <<-'EOF'
	10 clk MR8 00103fc4 0010400000000000
	11 ps MW16X 400171e0:0000400171e0 400f731b_40000000_3ff87cc4_60000000
	12 cyc MNW4___D (00000050:000000a8) 2002fa00 efbe0201
	13 ns MSW4___D 201fffec xxxxxxxx
	14 cs W04 X ffffffbdc3c15c30 010c010b
	15 clk MR4 dfdfdfcf (ABORTED)
	 16 ns LD 00000300  ........ ........ 00000800 ..##..11     0000000300    NM ISH INC
	          00000310  22222222 ........ ........ ........     0000000310    NM ISH INC
EOF
cat >"$seeds/tarmac/registers" <<-'EOF'
	14 clk R r8 00000000
	271ns R r13 20001fff (MSP)
	R R1 (USR) 00000800
	R V0<127:64> ffeeddccbbaa9988
	R Q0 -------- -------- 3ff6a09e 667f3bcd
	40 us R FPCR 01230123:23452345
	41 clk R cpsr xx0xxXxx __C_
	42 clk R TLBI ALLE3 00000000:00000000
EOF

for target in bcp1 segment config usb raw tarmac; do
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
