#!/bin/sh
# The folders are the architecture: formats <- capture <- daemon; cli uses formats and the simulated
# bus. Fails on an include, of ours or of a library, that crosses.
cd "$(dirname "$0")/.." || exit 1

crossing() { # FOLDER PATTERN [EXCEPT]
	grep -nE "#include [\"<]($2)" "$1"/*.[ch] | grep -vE "${3:-^$}"
}

bad=$(
	crossing formats 'capture/|daemon/|cli/|uv\.h|libusb|microhttpd|ini\.h|curl/|ncurses'
	crossing capture 'daemon/|cli/|microhttpd|ini\.h|curl/|ncurses'
	crossing cli 'daemon/|uv\.h|microhttpd|ini\.h'
	crossing cli 'capture/' '"capture/sim\.h"'
	crossing daemon 'cli/|curl/|ncurses'
	# The simulated bus but for its source: the hand tool links it.
	grep -nE '#include [<"](uv\.h|libusb|capture/(source|[a-z]+_source))' $(ls capture/sim*.[ch] | grep -v sim_source)
)
if [ -n "$bad" ]; then
	echo "includes that cross the layers (docs/architecture.md):"
	echo "$bad"
	exit 1
fi
echo "layers: no include crosses"
