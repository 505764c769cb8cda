# buscapd: one Makefile, not recursive. `make help` lists the targets.

VERSION := 0.1.0

ifeq ($(origin CC),default)
CC := gcc
endif
CFLAGS   ?= -O2 -g
PREFIX   ?= /usr/local
PYTHON   ?= /usr/bin/python3
SAN      ?=
V        ?=

comma := ,

# What the programs and the tests need: pkg-config name or command, and the Debian package with it.
LIBRARIES := \
	libuv:libuv1-dev \
	liblz4:liblz4-dev \
	zlib:zlib1g-dev \
	libzstd:libzstd-dev \
	libxxhash:libxxhash-dev \
	libdeflate:libdeflate-dev \
	libcjson:libcjson-dev \
	inih:libinih-dev \
	libmicrohttpd:libmicrohttpd-dev \
	libusb-1.0:libusb-1.0-0-dev \
	cmocka:libcmocka-dev \
	libusbredirparser-0.5:libusbredirparser-dev \
	umockdev-1.0:libumockdev-dev
TOOLS := \
	pkg-config:pkg-config \
	lz4:lz4 \
	zstd:zstd \
	file:file \
	curl:curl \
	python3:python3 \
	xxhsum:xxhash \
	umockdev-wrapper:umockdev \
	valgrind:valgrind \
	strace:strace \
	vcd2fst:gtkwave
FUZZ_TOOLS := \
	clang:clang$(comma)libclang-rt-dev
LINT_TOOLS := \
	clang-format:clang-format \
	clang-tidy:clang-tidy \
	cppcheck:cppcheck

FORMATS_PKGS := liblz4 zlib libzstd libxxhash libdeflate libcjson
DAEMON_PKGS  := $(FORMATS_PKGS) libuv inih libmicrohttpd libusb-1.0
TEST_PKGS    := $(DAEMON_PKGS) cmocka
USBREDIR_PKGS := libusbredirparser-0.5
UMOCKDEV_PKGS := umockdev-1.0

BUILD := build$(if $(SAN),/$(subst $(comma),-,$(SAN)))
Q     := $(if $(V),,@)
CORES := $(shell nproc)
say    = $(if $(V),@:,@printf '  %-4s %s\n')

# Asked once, when first needed: `make deps` may be what installs pkg-config.
pkg_cflags = $(eval pkg_cflags := $$(shell pkg-config --cflags $(TEST_PKGS)))$(pkg_cflags)
pkg_libs   = $(shell pkg-config --libs $(1)) -lm

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wwrite-strings -Wundef -Wvla
BC_CFLAGS = -std=c11 -D_GNU_SOURCE -DBC_VERSION='"$(VERSION)"' -I. -pthread $(WARNINGS) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all) \
	$(pkg_cflags)
BC_LDFLAGS = -pthread $(if $(SAN),-fsanitize=$(SAN))

FOLDERS := formats capture daemon cli
SOURCES := $(wildcard $(FOLDERS:=/*.c))
TESTS   := $(patsubst tests/%.c,%,$(wildcard tests/test_*.c))
# What has threads; the rest would only take long under SAN=thread.
THREADED := test_queue test_decoder test_file_source test_sim_source test_stream test_input \
	test_usbfs test_usbfs_unplug test_raw_session \
	test_usb_source test_usb_faults test_usb_plugs test_usb_edges test_usb_calls test_usb_find
CHECKED  := $(if $(filter thread,$(SAN)),$(THREADED),$(TESTS))
# What the Python tests start or put below the programs.
HELPERS := $(addprefix $(BUILD)/tests/,faultfs.so usbredir_board umockdev_board preload_fix.so bare_reader)
BENCHES := $(patsubst tests/%.c,%,$(wildcard tests/bench_*.c))

objects  = $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/main.c,$(wildcard $(1)/*.c)))
ARCHIVES := $(FOLDERS:%=$(BUILD)/lib%.a)
# capture/sim*.c alone serves the hand tool; the rest of capture/ wants the loop.
SIM_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(filter-out capture/sim_source.c,$(wildcard capture/sim*.c)))

.PHONY: all deps demo demo-lackey test check check-clickhouse bench lint fuzz valgrind layers format install clean help
.DEFAULT_GOAL := all
.SECONDARY:
.DELETE_ON_ERROR:

all: $(BUILD)/buscapd $(BUILD)/buscap ## build both programs into build/

# Where everything may be missing yet, install first.
ifneq ($(filter deps demo demo-lackey test,$(MAKECMDGOALS)),)
$(SOURCES:%.c=$(BUILD)/%.o) $(TESTS:%=$(BUILD)/tests/%.o): | deps
$(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/board/*.c)): | deps
endif

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) $(BC_CFLAGS) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

define archive
$(BUILD)/lib$(1).a: $$(call objects,$(1))
	$$(say) AR $$@
	$$(Q)rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach folder,$(FOLDERS),$(eval $(call archive,$(folder))))

$(BUILD)/buscapd: $(BUILD)/daemon/main.o $(BUILD)/libdaemon.a $(BUILD)/libcapture.a $(BUILD)/libformats.a
	$(say) LINK $@
	$(Q)$(CC) $(BC_LDFLAGS) $(LDFLAGS) -o $@ $^ $(call pkg_libs,$(DAEMON_PKGS))

$(BUILD)/buscap: $(BUILD)/cli/main.o $(BUILD)/libcli.a $(SIM_OBJECTS) $(BUILD)/libformats.a
	$(say) LINK $@
	$(Q)$(CC) $(BC_LDFLAGS) $(LDFLAGS) -o $@ $^ $(call pkg_libs,$(FORMATS_PKGS))

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/libboard.a $(BUILD)/libcli.a $(BUILD)/libdaemon.a $(BUILD)/libcapture.a $(BUILD)/libformats.a
	$(say) LINK $@
	$(Q)$(CC) $(BC_LDFLAGS) $(LDFLAGS) -o $@ $^ $(call pkg_libs,$(TEST_PKGS))

# Tests of what drives a board: with a kernel's USB in software, tests/board/usbfs.h.
USBFS_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/board/usbfs*.c))
$(USBFS_OBJECTS): # being named, they don't make the general rule above look nearer

define link_usb
$(BUILD)/tests/$(1)%: $(BUILD)/tests/$(1)%.o $(USBFS_OBJECTS) $(BUILD)/libboard.a $(BUILD)/libdaemon.a $(BUILD)/libcapture.a $(BUILD)/libformats.a
	$$(say) LINK $$@
	$$(Q)$$(CC) $$(BC_LDFLAGS) $$(LDFLAGS) -o $$@ $$^ $$(call pkg_libs,$$(TEST_PKGS)) -ldl
endef
$(foreach name,test_usb bench_usb,$(eval $(call link_usb,$(name))))

# A capture board in software: tests/board/board.h.
BOARD_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/board/board*.c))

$(BUILD)/libboard.a: $(BOARD_OBJECTS)
	$(say) AR $@
	$(Q)rm -f $@ && ar rcs $@ $^

# That board as a USB device for a virtual machine, which the Python tests start.
$(BUILD)/tests/board/usbredir_%.o: BC_CFLAGS += $(shell pkg-config --cflags $(USBREDIR_PKGS))
$(BUILD)/tests/usbredir_board: $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/board/usbredir_*.c)) \
		$(BUILD)/libboard.a $(BUILD)/libcapture.a $(BUILD)/libformats.a
	$(say) LINK $@
	$(Q)$(CC) $(BC_LDFLAGS) $(LDFLAGS) -o $@ $^ $(call pkg_libs,$(USBREDIR_PKGS) $(FORMATS_PKGS))

# The same as a device in sysfs, for a program under libumockdev-preload; and the least that reads it.
$(BUILD)/tests/board/umockdev_%.o: BC_CFLAGS += $(shell pkg-config --cflags $(UMOCKDEV_PKGS))
$(BUILD)/tests/umockdev_board: $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/board/umockdev_*.c)) \
		$(BUILD)/libboard.a $(SIM_OBJECTS) $(BUILD)/libformats.a
	$(say) LINK $@
	$(Q)$(CC) $(BC_LDFLAGS) $(LDFLAGS) -o $@ $^ $(call pkg_libs,$(UMOCKDEV_PKGS) $(FORMATS_PKGS))

$(BUILD)/tests/bare_reader: $(BUILD)/tests/board/bare_reader.o
	$(say) LINK $@
	$(Q)$(CC) $(BC_LDFLAGS) $(LDFLAGS) -o $@ $^ $(call pkg_libs,libusb-1.0)

# Go under the real calls of a program. faultfs makes them fail, be short or slow; preload_fix is for
# programs under libumockdev-preload.
$(BUILD)/tests/faultfs.so: tests/faultfs.c
$(BUILD)/tests/preload_fix.so: tests/board/preload_fix.c
$(BUILD)/tests/%.so:
	@mkdir -p $(@D)
	$(say) LINK $@
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) $(CFLAGS) -shared -fPIC -o $@ $< -ldl

deps: ## install what is missing, or say what it is
	@tests/deps.sh $(LIBRARIES) -- $(TOOLS)

demo: deps all ## record the simulated bus for a few seconds and look at the result
	@tests/demo.sh $(BUILD)

demo-lackey: deps all ## put a real program's trace on the bus, record it and look at the result
	@tests/demo_lackey.sh $(BUILD)

test: deps check ## install, build and run all tests

check: all $(CHECKED:%=$(BUILD)/tests/%) $(HELPERS) ## run all tests; with SAN=thread those with threads
	@BUILD=$(BUILD) PYTHON=$(PYTHON) tests/run.sh $(CHECKED:%=$(BUILD)/tests/%)

check-clickhouse: all ## load rowbinary into a clickhouse-server on loopback and check it; installs one
	@BUILD=$(BUILD) $(PYTHON) tests/check_clickhouse.py

bench: all $(BENCHES:%=$(BUILD)/tests/%) ## print speed and size ratios against lz4, memcpy, scanf and printf
	@BUILD=$(BUILD) $(PYTHON) tests/bench.py

lint: ## clang-format, clang-tidy, cppcheck and gcc -fanalyzer
	@tests/deps.sh $(LIBRARIES) -- $(TOOLS) $(LINT_TOOLS)
	$(say) LINT clang-format
	$(Q)clang-format --dry-run -Werror $(wildcard $(addsuffix /*.[ch],$(FOLDERS) tests tests/board))
	$(say) LINT clang-tidy
	$(Q)$(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(CORES)) $(SOURCES:%=tidy/%)
	$(say) LINT cppcheck
	$(Q)cppcheck --quiet -j $(CORES) --std=c11 --language=c --enable=warning,performance,portability \
		--inline-suppr --error-exitcode=1 --suppress=missingIncludeSystem -D_GNU_SOURCE -I. $(SOURCES)
	$(say) LINT 'gcc -fanalyzer'
	$(Q)$(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(CORES)) $(SOURCES:%=analyze/%)

# One source each, as many at a time as there are cores.
tidy/%:
	$(Q)clang-tidy --quiet $* -- $(filter-out -fsanitize% -fno-sanitize%,$(BC_CFLAGS)) 2>/dev/null

analyze/%:
	$(Q)$(CC) $(BC_CFLAGS) -O1 -fanalyzer -Werror -c -o /dev/null $*

# libFuzzer is clang's, and wants all of the code built with it.
FUZZED := $(patsubst %.c,build/fuzz/%.o,$(filter-out %/main.c,$(wildcard formats/*.c capture/*.c daemon/*.c)))
FUZZERS := $(patsubst tests/%.c,build/fuzz/%,$(wildcard tests/fuzz_*.c))
FUZZ_SECONDS ?= 10
FUZZ_SANITIZERS := address,undefined

build/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)clang -std=c11 -D_GNU_SOURCE -DBC_VERSION='"$(VERSION)"' -I. -pthread -O1 -g \
		-fsanitize=fuzzer-no-link,$(FUZZ_SANITIZERS) -fno-sanitize-recover=all $(pkg_cflags) \
		-MMD -MP -c -o $@ $<

build/fuzz/libfuzzed.a: $(FUZZED)
	$(say) AR $@
	$(Q)rm -f $@ && ar rcs $@ $^

$(FUZZERS): build/fuzz/%: build/fuzz/tests/%.o build/fuzz/libfuzzed.a
	$(say) LINK $@
	$(Q)clang -pthread -fsanitize=fuzzer,$(FUZZ_SANITIZERS) -o $@ $^ $(call pkg_libs,$(DAEMON_PKGS))

fuzz: all ## fuzz what reads bytes from outside, FUZZ_SECONDS (10) each
	@tests/deps.sh $(LIBRARIES) -- $(TOOLS) $(FUZZ_TOOLS)
	$(Q)$(MAKE) --no-print-directory $(FUZZERS)
	@tests/fuzz.sh build/fuzz $(FUZZ_SECONDS)

# What opens and closes devices at every point: the sanitizers don't see into libusb.
VALGRIND := test_usbfs test_usb_find test_usb_edges test_usb_calls

valgrind: $(VALGRIND:%=$(BUILD)/tests/%) ## run the tests that open and close devices under valgrind
	$(Q)for t in $^; do echo "  VALGRIND $$t"; \
		USB_RUN_FEW=1 valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite \
			--error-exitcode=9 $$t >$(BUILD)/valgrind.log 2>&1 || \
			{ tail -n 40 $(BUILD)/valgrind.log; exit 1; }; done

layers: ## fail if an include crosses the layers
	@tests/layers.sh

format: ## reformat the sources
	$(Q)clang-format -i $(wildcard $(addsuffix /*.[ch],$(FOLDERS) tests tests/board))

install: all ## install the programs and the udev rule below DESTDIR and PREFIX
	install -D -m 755 $(BUILD)/buscapd $(DESTDIR)$(PREFIX)/sbin/buscapd
	install -D -m 755 $(BUILD)/buscap $(DESTDIR)$(PREFIX)/bin/buscap
	install -D -m 644 systemd/60-buscapd.rules $(DESTDIR)$(PREFIX)/lib/udev/rules.d/60-buscapd.rules

clean: ## remove what was built
	rm -rf build demo

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo '  SAN=address,undefined or SAN=thread builds with sanitizers, below build/'
	@echo '  V=1 shows the commands; CC, CFLAGS, LDFLAGS, PREFIX, DESTDIR are respected'

-include $(wildcard $(BUILD)/*/*.d $(BUILD)/tests/board/*.d build/fuzz/*/*.d)
