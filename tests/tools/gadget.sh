#!/bin/sh
# gadget.sh start BOARD [UDC]    makes this computer a capture board at its USB device port, as root
# gadget.sh stop                 removes all that start made, also after a crash
# BOARD is serial=B1,rate=100000 or the like (docs/test-board.md), UDC one of /sys/class/udc, by default the first.
# Commands go to /run/gadget_board/commands, and the answers to /run/gadget_board/answers.
set -u
gadget=/sys/kernel/config/usb_gadget/capture_board
run=/run/gadget_board

die() {
	echo "gadget.sh: $*" >&2
	exit 2
}

option() { # NAME DEFAULT
	value=$(echo ",$board" | sed -n "s/.*,$1=\([^,]*\).*/\1/p")
	echo "${value:-$2}"
}

is_running() {
	case $(readlink "/proc/$(cat $run/pid 2>/dev/null)/exe") in */gadget_board*) ;; *) false ;; esac
}

stop() {
	while is_running && kill "$(cat $run/pid)" 2>/dev/null; do sleep 0.1; done # it sends its last frame
	rm -f $gadget/configs/c.1/ffs.board
	! mountpoint -q $run/ffs || umount $run/ffs
	rmdir $gadget/configs/c.1 $gadget/functions/ffs.board $gadget/strings/0x409 $gadget 2>/dev/null
	rm -rf $run
	[ ! -e $gadget ] || die "$gadget: can't be removed; only root can, and only what start made"
}

[ "$#-${1-}" != 1-stop ] || { stop && exit; }
case $#-${1-} in 2-start | 3-start) board=$2 ;; *) die "usage: gadget.sh start BOARD [UDC] | stop" ;; esac
here=$(dirname "$0")
program=$(command -v "$here/gadget_board" || command -v "$here/../../build/tests/gadget_board") ||
	die "build/tests/gadget_board: not built; run make gadget"
[ ! -e $gadget ] || die "$gadget: exists; gadget.sh stop removes it"
udc=/sys/class/udc/${3-$(find /sys/class/udc/* -prune -printf '%f\n' 2>/dev/null | head -n 1)}
[ -e "$udc/function" ] || die "$udc: no such USB device controller; docs/test-board.md says how to enable one"
[ -z "$(cat "$udc/function")" ] || die "$udc: in use by $(cat "$udc/function"); stop that, or name another controller"

trap 'stop; exit 2' EXIT
modprobe -q libcomposite
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
mkdir $gadget $gadget/functions/ffs.board $gadget/strings/0x409 $gadget/configs/c.1 $run $run/ffs 2>/dev/null ||
	die "$gadget/functions/ffs.board: can't be made; it needs root, and a kernel with FunctionFS"
mkfifo $run/commands && mount -t functionfs board $run/ffs || exit
option vid 0x1209 >$gadget/idVendor && option pid 0x0001 >$gadget/idProduct || exit
option serial '' >$gadget/strings/0x409/serialnumber
echo 'bus capture board (simulated)' >$gadget/strings/0x409/product
ln -s $gadget/functions/ffs.board $gadget/configs/c.1/
# Opened for reading and writing, the pipe never ends.
setsid "$program" "$board" $run/ffs <>$run/commands >$run/answers 2>$run/errors &
echo $! >$run/pid
while [ ! -e $run/ffs/ep1 ] && kill -0 $! 2>/dev/null; do sleep 0.1; done
[ -e $run/ffs/ep1 ] || { cat $run/errors >&2 && exit 2; }
(echo "${udc##*/}" >$gadget/UDC) 2>/dev/null || die "$udc: refuses the board; dmesg says why"
trap - EXIT
