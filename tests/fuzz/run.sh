#!/bin/sh
# run.sh FOLDER SECONDS [TARGET]: runs each fuzz target in FOLDER, or only TARGET, for SECONDS. One target runs per
# core. The seeds are in tests/fuzz/corpus, below, or are made with the programs. Inputs that fail are left in FOLDER.
set -u
cd "$(dirname "$0")/../.." || exit 1
folder=$1
seconds=$2
seeds=$folder/seeds
n=0

if [ $# = 3 ]; then
	target=$3
	mkdir -p "$folder/corpus-$target" "$seeds/$target"
	corpus=tests/fuzz/corpus/$target
	[ -d "$corpus" ] || corpus=
	export LLVM_PROFILE_FILE="$folder/$target.profraw" # of fuzz-coverage
	max=8192
	[ "$target" = record_encoder ] && max=100000 # beyond its trial and the reach of a match
	if "$folder/fuzz_$target" -max_total_time="$seconds" -max_len=$max -timeout=20 -rss_limit_mb=2048 \
		-artifact_prefix="$folder/$target-" -print_final_stats=1 \
		"$folder/corpus-$target" "$seeds/$target" $corpus >"$folder/$target.log" 2>&1; then
		runs=$(awk '/number_of_executed_units/ { print $2 }' "$folder/$target.log")
		echo "fuzz $target: $runs inputs in $seconds s, nothing found"
		exit 0
	fi
	echo "fuzz $target: FAILED; its input is in $folder/
$(tail -n 30 "$folder/$target.log")"
	exit 1
fi

# Each program is a target. Seeds for targets that were not built are ignored.
targets=$(cd "$folder" && ls | sed -n 's/^fuzz_\([a-z0-9_]*\)$/\1/p')
rm -rf "$seeds"
for target in $targets bcp1 segment recover repaired pages overview config usb api_body record_encoder; do
	mkdir -p "$seeds/$target"
done

for seed in 1 2 3; do
	{ printf "\\00$((seed + 1))\\000"; build/buscap sim --seed $seed --count 300 -O byu; } >"$seeds/record_encoder/$seed"
	{ printf '\007'; build/buscap sim --seed $seed --count 200 --loss 0.2 --corrupt 0.2 -O bcp1; } >"$seeds/bcp1/$seed"
	build/buscap sim --seed $seed --count 50 -O raw6 >"$seeds/segment/raw6-$seed"
	build/buscap sim --seed $seed --count 50 -O byu >"$seeds/segment/byu-$seed"
	build/buscap sim --seed $seed --count 60 -O byu | lz4 -q >"$seeds/segment/lz4-$seed"
	build/buscapd --once --source sim:rate=max,count=300,seed=$seed,loss=0.5 -o "$seeds/out-$seed" >/dev/null 2>&1
	cat "$seeds/out-$seed"/*.byu.lz4 >"$seeds/segment/segment-$seed"
	cp "$seeds/segment/segment-$seed" "$seeds/repaired/$seed"
	cp "$seeds/segment/segment-$seed" "$seeds/pages/$seed"
	{ printf '\377'; cat "$seeds/segment/segment-$seed"; } >"$seeds/overview/$seed"
	# The same records in zstd frames.
	build/buscap cut -O segment:compression=zstd -o "$seeds/out-$seed/x.byu.zst" "$seeds/out-$seed"/*.byu.lz4
	cp "$seeds/out-$seed/x.byu.zst" "$seeds/segment/zstd-$seed"
	cp "$seeds/out-$seed/x.byu.zst" "$seeds/repaired/zstd-$seed"
	{ printf '\377'; cat "$seeds/out-$seed/x.byu.zst"; } >"$seeds/overview/zstd-$seed"
	for how in 000 002 004 016; do
		{ printf "\\$how"; cat "$seeds/segment/segment-$seed"; } >"$seeds/recover/$how-$seed"
		{ printf "\\$how"; cat "$seeds/segment/zstd-$seed"; } >"$seeds/recover/$how-zstd-$seed"
	done
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
printf '\000\000\001\003\026\001\310\001\324\217\200\010\001' >"$seeds/pages/counts"
printf '\204\003\027\001\002\377\001\021\005' >"$seeds/pages/coarse"
printf '[source]\nsource = usb:serial=A1,wait=1s\n[usb]\nid = 1209:0001\nlink = ftdi\n' >"$seeds/config/usb"
printf '[source]\nsource = file:a,b,format=raw6,clock_hz=66000000\n' >"$seeds/config/file"

cat >"$seeds/api_body/start" <<-'EOF'
	{"label":"a\u00e9","metadata":{"k":"v","l m":""},"limits":{"duration":"10ms","records":1e3,"filesize":"64M"},
	 "pre":0.5,"triggers":[{"when":"addr=0-ff"},{}],"speed":-0.25,"until_stopped":true,"clock_hz":66000000}
EOF
cat >"$seeds/api_body/trigger" <<-'EOF'
	{"name":"roi","when":"addr=1000-1fff type=read,0xf2 proc=0,2-3","action":"snapshot","pre":"5s","post":"16M","text":"here","holdoff":0.5}
EOF
printf '{"text":"\342\202\254\\ud83d\\ude8c"}' >"$seeds/api_body/text"

# One vendor-specific interface with a bulk IN endpoint of 512; an answer to GET_INFO.
printf '\001\001\001\000\000\001\201\002\002\000' >"$seeds/usb/board"
{ printf 'x\001\000\000\000\200\025\357\003'; head -c 55 /dev/zero; } >"$seeds/usb/info"

# Requests, after a byte that selects the length of the pieces.
request() { # NAME TEXT
	mkdir -p "$seeds/http"
	for first in 000 017 043 120; do
		printf "\\$first$2" >"$seeds/http/$1-$first"
	done
}
request get 'GET /v1/status?q=1&a=%%41 HTTP/1.1\r\nHost: h\r\n\r\n'
request old 'HEAD / HTTP/1.0\r\n\r\n'
request post 'POST /late HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"text":"x"}GET /x HTTP/1.1\r\nHost: h\r\n\r\n'
request chunked 'POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n1;e=f\r\nf\r\n0\r\nX: y\r\n\r\n'
request expect 'PUT /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc'
request long 'PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 300\r\n\r\n%0250d'
request stream 'GET /s HTTP/1.1\r\nHost: h\r\n\r\n'
request waiting 'GET /s?q HTTP/1.0\r\n\r\n'
request zero 'GET /%%00?a=%%00 HTTP/1.1\r\nHost: h\r\n\r\n'

# Responses, after the size of the pieces.
response() { # NAME TEXT
	mkdir -p "$seeds/http_response"
	printf "\\000$2" >"$seeds/http_response/$1"
	printf "\\007$2" >"$seeds/http_response/$1-in-pieces"
}
response length 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'
response chunked 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n1;e=f\r\nf\r\n0\r\nX: y\r\n\r\n'
response to-end 'HTTP/1.0 404 Not Found\n\nnothing'
response empty 'HTTP/1.1 204 No Content\r\n\r\n'

cat >"$seeds/tarmac/instructions" <<-'EOF'
	Tarmac Text Rev 3t
	0 clk cpu0 E 10001848 00000001 CoreEvent_RESET
	1 clk 0 IT (1) 00000004 3c080001 A svc : lui t0,0x1
	2 clk cpu1 IS (2) 00008000:000000008000_NS,000000009000_NS 1afb T svc_ns : SUBNE r3,r7,r3
	3 cs IT (00000000004d6eb0) 54000001 O  -Z-_- :   b.ne 0x4d
	4 cyc IT (00000100:0000000a) 00000100     4801 T16 LDR      r0,[pc,#4]  ; [0x108]
	 5 ns  ES  (000001a4:03a06a01) A svc:     CCFAIL MOVEQ    r6,#1
	6 tic ES (10000b58:--------) T thrd_s:
	7 clk cluster1.cpu0 IT (7) (1|ffffc00000010005|80001000):80001000 c2c253c0 C EL3h_s : RET C30
	8 clk css.rse.cpu ES (00001008:1a) J EL0t_n: iload_0
EOF
cat >"$seeds/tarmac/accesses" <<-'EOF'
	10 clk MR8 00103fc4 0010400000000000
	11 ps MW16X 400171e0:0000400171e0 400f731b_40000000_3ff87cc4_60000000
	12 cyc MNW4___D (00000050:000000a8) 2002fa00 efbe0201
	13 ns MSW4___D 201fffec xxxxxxxx
	14 cs W04 X ffffffbdc3c15c30 010c010b
	15 clk MR4 dfdfdfcf (ABORTED)
	15 clk MR4 (1|5|80001000):1000 00000001 MW4 1004 00000002 R c0 1|5|80001000 MR4 1008
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

# Seeds for a parser: the first byte selects options and block size (tests/fuzz/fuzz_parser.h).
text() { # TARGET TEXT
	mkdir -p "$seeds/$1"
	for first in 000 003 015; do
		printf "\\$first$2" >"$seeds/$1/$first"
	done
}
text din '0 7ffe12\n1 0x10\n2 ffffffffffffffff\n3 1\n4 0 more\n\n5 1\n0 10000000000000000\n'
for row in '{type} {addr}|r 10' '{pc}: {type:R=read} {addr} {size} %% {...} x {time:s}{type=write}{addr}|1: R ff 4' '{*} {delta} [{addr:d}]{type=m}|a 1 [7]'; do
	n=$((n + 1))
	mkdir -p "$seeds/lines"
	printf '%s\n%s\n\n%s' "$(echo "$row" | cut -d'|' -f1 | sed 's/%%/|/')" "${row##*|}" "${row##*|}" >"$seeds/lines/$n"
done
text xdin 'r 7ffe12 4\nw 0x10 8\ni ffffffffffffffff ffffffff\nm 1 0\nc 1 1\nv 1 1\n\nr 1\nr 1 100000000\n'
text csv 'kind,number,tick,epoch,type,addr,size,attr,proc,delta,cause,lost,exact,text\ngap,1,5,0,,,,,,,disk,7,true,\nreference,1,6,0,FETCH,0x10,8,0,1,6,,,,\nmark,2,6,0,,,,,,,,,,"a\n""b"", c"\n"x\n'
text ndjson '{"kind":"mark","tick":5,"epoch":1,"text":"a\\n\\u00ff\\u20ac\\ud83d\\ude00"}\n{"kind":"reference","type":"0xf2","addr":"0x5","x":{"a":["}"]},"size":null}\n{"kind":"instruction","addr":1,"effect":"skipped","opcode":"0x0001","id":5,"line":"x"}\n'
text lackey '==1== x\n--1-- y\n**1** z\nSB 04016930\nI  04016930,3\n S 1ffefffd88,8\n L 04222cac,16\n M 0421c7cc,4294967295\n\nhello\n L 1,\n'
text cis501 '1 40061e -1 -1 -1 R T -       -96            0       400620       4005c0 J        JMP_IMM\n2 4005c0 44 -1  2 - - L -9223372036854775808 ffffffffffffffff 0 0 MOVSX SEXT_DWORD_TO_QWORD\n\n1 4 100 -1 2147483647 W N S 1 1 1 1 A B\n1 1 1\n'
text laplace_text 'r 123456789abcdef0 4 9f8e7 9a8b7c6d\nr 123456789abcdef0 4 9a8b7 8888ffff3e456a21\n! 0 0 0 0\ni ffffffffffffffff ffffffff ffffffff ffffffffffffffff\n\nw 1 2 3\n'
text laplace_events 'F 123456789abcdef7 100 77\nM 123456789abcdefe 100 1a2b3c4d 9000 8efa5567 35 5 1029384756afbecd foobar.so\nFORK 0A x\r\n ! 1\n\nF x\n'
text laplace 'r\360\336\274\232\170\126\064\022\004\347\370\011\000\155\174\213\232i\001\000\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\007\001\000\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000'

mkdir -p "$seeds/capture"
head='$timescale 10 ns $end\n$scope module t $end\n$var wire 1 ! clk $end\n$var wire 16 A a [15:0] $end\n$var wire 1 B d [0] $end\n$var real 1 R r $end\n$enddefinitions $end\n'
printf "0clock=clk+-d,addr=t.a+d@-clk,data=d,when=-d,type=d:1=write|0x0=fetch,fetch=d,setup=60ns\n$head#0 0!\nb10x A\n1B r1.5 R\n\$dumpoff\n#5.5\n\$dumpon 1! \$end\n" >"$seeds/capture/vcd"
printf '7clock=c,addr=A,be=B,control=C\n; Channels (3/3): c, A0, B, C\n; Samplerate: 8 MHz\nlogic,logic,logic,logic\n0,1,x,0\n1,0,0xff,3\n' >"$seeds/capture/sigrok"
printf '4clock=c,addr=A\nTime [s],c,A0,A1\n0.0,0,1,1\n0.000000125,1,0,0\n' >"$seeds/capture/saleae"
for signals in vectors bits; do
	{ printf '0\n'; build/buscap sim --seed 4 --count 40 --loss 0.2 -O bcp1 | build/buscap convert -O vcd:signals=$signals; } >"$seeds/capture/own-$signals"
done

# Seeds for conversions: whole files after a byte for the source format (0: detect) and one for the target.
for target in $targets segment; do
	for seed in "$seeds/$target"/*; do
		[ -f "$seed" ] || continue
		case $target in
		bcp1 | cis501 | din | lackey | laplace* | tarmac | xdin) skip=2 ;;
		segment) skip=1 ;;
		*) continue ;;
		esac
		[ "$target" = tarmac ] && skip=1
		name=$target-$(basename "$seed")
		n=$((n + 1))
		first=$(printf '\\000\\%03o' $((n % 60)))
		case $name in
		*-000 | *-1 | tarmac-*)
			for to in $(seq 1 22); do # the formats of formats/base/format_id.h
				{ printf "\\000\\$(printf %03o "$to")"; tail -c +$skip "$seed"; } >"$seeds/convert/$name-$to"
			done
			;;
		esac
		{ printf "$first"; tail -c +$skip "$seed"; } >"$seeds/convert/$name"
		{ printf "$first"; tail -c +$skip "$seed" | gzip -c; } >"$seeds/convert/$name.gz"
		{ printf "$first"; tail -c +$skip "$seed" | zstd -qc; } >"$seeds/convert/$name.zst"
		{ printf "$first"; tail -c +$skip "$seed" | xz -0 -c; } >"$seeds/convert/$name.xz"
	done
done

# Directories of the targets: in memory if possible.
TMPDIR=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)/fuzz-XXXXXX") || exit 1
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 1' INT TERM
echo "$targets" | xargs -P "$(nproc)" -I TARGET tests/fuzz/run.sh "$folder" "$seconds" TARGET
