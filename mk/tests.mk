# Tests, fuzzing and benchmarks. Every tests/unit/*/test_*.c is a program, built to the same path below BUILD.

.PHONY: test tests check gadget test-machine check-fresh check-fleet check-fleet-engine bench bench-directory bench-find bench-report bench-web bench-instructions fuzz fuzzers fuzz-coverage valgrind

TEST_PKGS     := $(PROGRAM_PKGS) cmocka
USBREDIR_PKGS := libusbredirparser-0.5

TEST_SOURCES := $(wildcard tests/unit/*/test_*.c)
# Under SAN=thread only the tests that start threads run; they say so themselves.
CHECKED      := $(patsubst %.c,$(BUILD)/%,$(if $(filter thread,$(SAN)),$(shell grep -l '^TEST_THREADS;' $(TEST_SOURCES)),$(TEST_SOURCES)))
BENCHES      := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/bench/bench_*.c))
TEST_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(TEST_SOURCES) $(wildcard tests/support/*.c tests/board/*.c tests/bench/*.c))
HELPERS      := $(addprefix $(BUILD)/tests/,faultfs.so faultalloc.so faultclock.so faultthread.so buscapd_usb gadget_board \
	$(if $(SAN),,buscap))
ONLY         ?=

test_cflags = $(eval test_cflags := $$(call pkg_config,--cflags cmocka,deps-test))$(test_cflags)
$(BUILD)/tests/unit/%.o $(BUILD)/tests/support/%.o: BC_CFLAGS += $(test_cflags)
# Tests compile fast: their own speed is never measured.
ifeq ($(origin CFLAGS),file)
$(BUILD)/tests/unit/%.o $(BUILD)/tests/support/%.o: CFLAGS := -O1 -g1
endif

# main() of the test programs, and what they share.
$(BUILD)/libsupport.a: $(BUILD)/tests/support/test_main.o $(BUILD)/tests/support/test_descriptors.o
	$(say) AR $@
	$(Q)rm -f $@ && ar rcs $@ $^

# A kernel's USB in software, for the tests that drive a board: tests/board/usbfs.h.
USBFS_OBJECTS   := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/board/usbfs*.c))

# These programs have a close() of their own, which ThreadSanitizer sees only from outside.
$(BUILD)/tests/unit/usb/%: SAN_LDFLAGS = -fsanitize=$(SAN)
$(BUILD)/tests/unit/usb/%: $(BUILD)/tests/unit/usb/%.o $(USBFS_OBJECTS) $(BUILD)/libsupport.a $(BUILD)/libboard.a $(LIB_DAEMON)
	$(call link,$(TEST_PKGS))

$(BUILD)/tests/unit/formats/test_server: TEST_PKGS += libmicrohttpd
$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(BUILD)/libsupport.a $(BUILD)/libboard.a $(BUILD)/libcli.a $(LIB_DAEMON)
	$(call link,$(TEST_PKGS))

$(BUILD)/tests/bench/bench_usb%: $(BUILD)/tests/bench/bench_usb%.o $(USBFS_OBJECTS) $(BUILD)/libboard.a $(LIB_DAEMON)
	$(call link,$(PROGRAM_PKGS))

$(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/libboard.a $(BUILD)/libcli.a $(LIB_DAEMON)
	$(call link,$(PROGRAM_PKGS))

# The capture board in software: tests/board/board.h.
$(BUILD)/libboard.a: $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/board/board*.c))
	$(say) AR $@
	$(Q)rm -f $@ && ar rcs $@ $^

# The board as a USB device for a virtual machine.
$(BUILD)/tests/board/usbredir_%.o: BC_CFLAGS += $(call pkg_config,--cflags $(USBREDIR_PKGS),test-machine)
$(BUILD)/tests/usbredir_board: $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/board/usbredir_*.c)) \
		$(BUILD)/libboard.a $(LIB_CAPTURE)
	$(call link,$(USBREDIR_PKGS) $(FORMATS_PKGS))

# The same as a real USB device. A computer that is only a board has none of the other libraries, so this links objects and
# asks pkg-config for nothing else.
GADGET_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,tests/board/gadget_board.c $(wildcard tests/board/board*.c capture/sim/*.c) \
	formats/base/input_stream.c formats/bus/bcp1.c)
$(BUILD)/tests/gadget_board: pkg_cflags :=
$(BUILD)/tests/gadget_board: private pkg_libs = $(call pkg_config,--libs $(1),gadget)
$(BUILD)/tests/gadget_board: $(GADGET_OBJECTS)
	@mkdir -p $(@D)
	$(call link,libdeflate)

# buscapd with these boards in its process.
$(BUILD)/tests/buscapd_usb: SAN_LDFLAGS = -fsanitize=$(SAN)
$(BUILD)/tests/buscapd_usb: $(BUILD)/daemon/main/main.o $(BUILD)/commit.o $(BUILD)/tests/board/remote.o $(USBFS_OBJECTS) \
		$(BUILD)/libboard.a $(LIB_DAEMON)
	$(call link,$(DAEMON_PKGS))

# Preloaded under a program: faultfs makes its file calls fail, be short or slow; faultalloc makes its allocations
# fail; faultclock moves its clock; faultthread limits its threads.
$(BUILD)/tests/faultfs.so: tests/support/faultfs.c
$(BUILD)/tests/faultalloc.so: tests/support/faultalloc.c
$(BUILD)/tests/faultclock.so: tests/support/faultclock.c
$(BUILD)/tests/faultthread.so: tests/support/faultthread.c
$(BUILD)/tests/%.so:
	@mkdir -p $(@D)
	$(say) LINK $@
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) $(CFLAGS) -shared -fPIC -o $@ $< -ldl

# The tool as most tests run it, thousands of times: with its libraries linked statically, it starts in half the time.
# In Debian 13, libelf.a lacks two functions.
$(BUILD)/tests/buscap: private pkg_libs = -Wl,-Bstatic $(call pkg_config,--libs $(filter-out libelf,$(1)),deps) -Wl,-Bdynamic -lelf -lm
$(BUILD)/tests/buscap: $(BUILD)/cli/term/main.o $(BUILD)/commit.o $(BUILD)/libcli.a $(SIM_OBJECTS) $(LIB_FORMATS) $(BUILD)/buscap
	$(call link,$(CLI_PKGS))

empty :=
MARKS ?= $(if $(SAN),$(if $(filter thread,$(SAN)),threads and not single and not documents,not documents and not browser))
PYTEST_FLAGS = -n auto --dist loadgroup \
	$(if $(MARKS),-m '$(MARKS)') \
	$(if $(ONLY),-k '$(subst $(empty) $(empty), or ,$(strip $(ONLY)))') --junitxml $(BUILD)/tests/junit.xml

test: check ## install, build and run the tests

tests: $(CHECKED) $(HELPERS)

check: all tests ## run the tests; with SAN=thread those that start threads; LEVEL=ci or nightly runs more
	@BUILD=$(BUILD) BUSCAP_LEVEL=$(LEVEL) PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX='$(CURDIR)/$(BUILD)/pycache' \
		$(PYTHON) -m pytest -q $(PYTEST_FLAGS)

gadget: $(BUILD)/tests/gadget_board ## build a capture board for this computer's USB device port; say what it lacks
	@ls /sys/class/udc/* >/dev/null 2>&1 || echo 'this computer has no USB device controller yet: see docs/test-board.md'
	@echo 'start it: sudo tests/tools/gadget.sh start serial=B1,rate=100000'

test-machine: deb ## the packages in a whole machine under QEMU, with a board; RUNS=N times
	@$(MAKE) --no-print-directory $(BUILD)/tests/usbredir_board $(BUILD)/tests/gadget_board
	@BUILD=$(BUILD) $(PYTHON) tests/machine/run.py $(PACKAGE_DIR)

RELEASES ?= bookworm trixie
check-fresh: ## first commands and packages on bare RELEASES (bookworm trixie), as root; SHORT=1 as in make ci
	@ONLY='$(ONLY)' tests/tools/fresh.sh $(if $(SHORT),--short) $(RELEASES)

# The servers are those of Debian 12, unpacked into ~/.cache/buscapd; where they can't be had, it says so.
check-fleet: all ## the catalogue on six servers of ClickHouse, which it kills, and rowbinary; SHORT=1 as in make ci
	@BUILD=$(BUILD) PYTHONPATH=tests/support $(PYTHON) tests/fleet/check.py $(if $(SHORT),--short) || [ $$? = 77 ]

# Not part of CI: it is 550 MB. No cluster of today's ClickHouse can be had from Debian or npm.
check-fleet-engine: all ## the catalogue in today's ClickHouse, as an engine from npm, not as a cluster
	@BUILD=$(BUILD) PYTHONPATH=tests/support $(PYTHON) tests/fleet/check.py --engine || [ $$? = 77 ]

bench: all $(BENCHES) ## print speed and size ratios against lz4, memcpy and scanf
	@BUILD=$(BUILD) $(PYTHON) tests/bench/bench.py

bench-find: all ## search a recording of GIGABYTES (20) made on the spot; ratios to other ways
	@BUILD=$(BUILD) $(PYTHON) tests/bench/bench_find.py

bench-directory: all ## what 100,000 files (FILES) in its directory cost a daemon
	@BUILD=$(BUILD) PYTHONPATH=tests/support $(PYTHON) tests/bench/bench_directory.py

bench-web: all ## what two open pages cost a daemon that records 3 M samples/s
	@BUILD=$(BUILD) PYTHONPATH=tests/support $(PYTHON) tests/bench/bench_web.py

bench-report: all ## draw a recording of GIGABYTES (20) made on the spot
	@BUILD=$(BUILD) $(PYTHON) tests/bench/bench_report.py

bench-instructions: all ## count instructions per record and compare with the committed counts
	@BUILD=$(BUILD) $(PYTHON) tests/bench/instructions.py

# libFuzzer is part of clang. With AddressSanitizer everything is compiled for it.
FUZZERS      := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_DIR     := build/address-undefined/tests/fuzz
FUZZ_SECONDS ?= 5

$(FUZZERS): %: %.o $(BUILD)/libboard.a $(BUILD)/libcli.a $(LIB_DAEMON)
	$(call link,$(PROGRAM_PKGS)) -fsanitize=fuzzer

fuzzers: $(FUZZERS)

fuzz: all ## fuzz everything that reads bytes from outside, FUZZ_SECONDS (5) each
	$(Q)$(MAKE) --no-print-directory SAN=address,undefined fuzzers
	@tests/fuzz/run.sh $(FUZZ_DIR) $(FUZZ_SECONDS)

COVERAGE := -fprofile-instr-generate -fcoverage-mapping
fuzz-coverage: FUZZ_DIR := build/fuzz-coverage/tests/fuzz
fuzz-coverage: all ## fuzz for FUZZ_SECONDS each, then print the line coverage of each room
	$(Q)$(MAKE) --no-print-directory SAN=address,undefined BUILD=build/fuzz-coverage CFLAGS='-O1 -g $(COVERAGE)' fuzzers
	@tests/fuzz/run.sh $(FUZZ_DIR) $(FUZZ_SECONDS)
	@$(PYTHON) tests/fuzz/coverage.py $(FUZZ_DIR) $(notdir $(FUZZERS))

# Valgrind sees into libusb, which the sanitizers don't.
VALGRIND := $(patsubst %.c,%,$(shell grep -l '^TEST_VALGRIND;' $(TEST_SOURCES)))

valgrind: $(VALGRIND:%=valgrind/%) ## run the tests that open and close devices under valgrind

valgrind/%: $(BUILD)/%
	$(say) VALGRIND $<
	$(Q)valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite \
		--error-exitcode=9 $< >$<.valgrind.log 2>&1 || { tail -n 40 $<.valgrind.log; exit 1; }
