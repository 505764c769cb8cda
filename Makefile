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
	libcurl:libcurl4-gnutls-dev \
	ncursesw:libncurses-dev \
	libsystemd:libsystemd-dev \
	cmocka:libcmocka-dev \
	libusbredirparser-0.5:libusbredirparser-dev \
	umockdev-1.0:libumockdev-dev
TOOLS := \
	pkg-config:pkg-config \
	lz4:lz4 \
	zstd:zstd \
	mandoc:mandoc \
	groff:groff-base \
	file:file \
	curl:curl \
	python3:python3 \
	xxhsum:xxhash \
	umockdev-wrapper:umockdev \
	valgrind:valgrind \
	strace:strace \
	vcd2fst:gtkwave \
	tmux:tmux \
	jq:jq \
	zsh:zsh
PYTHON_MODULES := \
	pytest:python3-pytest \
	xdist:python3-pytest-xdist \
	pytest_timeout:python3-pytest-timeout
FUZZ_TOOLS := \
	clang:clang$(comma)libclang-rt-dev
TEST_LIBRARIES := cmocka:% libusbredirparser-0.5:% umockdev-1.0:%
PACKAGE_LIBRARIES := \
	systemd:systemd-dev/systemd \
	udev:systemd-dev/udev
PACKAGE_TOOLS := \
	pkg-config:pkg-config \
	lz4:lz4 \
	dh:debhelper \
	dpkg-buildpackage:dpkg-dev$(comma)build-essential
FRESH_TOOLS := \
	mmdebstrap:mmdebstrap \
	unshare:util-linux \
	git:git
# COMMAND:PACKAGE, of tests/machine.
MACHINE_TOOLS := \
	qemu-system-x86_64:qemu-system-x86$(comma)qemu-system-common$(comma)seabios$(comma)ipxe-qemu \
	mmdebstrap:mmdebstrap \
	busybox:busybox-static \
	cpio:cpio \
	depmod:kmod \
	mkfs.ext4:e2fsprogs \
	fakeroot:fakeroot \
	xxhsum:xxhash \
	lz4:lz4
LINT_TOOLS := \
	clang-format:clang-format \
	clang-tidy:clang-tidy \
	cppcheck:cppcheck

FORMATS_PKGS := liblz4 zlib libzstd libxxhash libdeflate libcjson
DAEMON_PKGS  := $(FORMATS_PKGS) libuv inih libmicrohttpd libusb-1.0 libsystemd
CLI_PKGS     := $(FORMATS_PKGS) libcurl ncursesw
PROGRAM_PKGS := $(DAEMON_PKGS) libcurl ncursesw
TEST_PKGS    := $(PROGRAM_PKGS) cmocka
USBREDIR_PKGS := libusbredirparser-0.5
UMOCKDEV_PKGS := umockdev-1.0

BUILD := build$(if $(SAN),/$(subst $(comma),-,$(SAN)))
Q     := $(if $(V),,@)
CORES := $(shell nproc)
say    = $(if $(V),@:,@printf '  %-4s %s\n')

# Asked once, when first needed: `make deps` may be what installs pkg-config.
pkg_cflags  = $(eval pkg_cflags := $$(shell pkg-config --cflags $(PROGRAM_PKGS)))$(pkg_cflags)
test_cflags = $(eval test_cflags := $$(shell pkg-config --cflags cmocka))$(test_cflags)
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
# What has threads says so; the rest would only take long under SAN=thread.
THREADED := $(patsubst tests/%.c,%,$(shell grep -l '^TEST_THREADS;' tests/test_*.c))
# With ONLY="WORD..." those whose name has one of the words.
ONLY     ?=
is_wanted = $(if $(ONLY),$(strip $(foreach word,$(ONLY),$(findstring $(word),$(1)))),yes)
CHECKED  := $(foreach test,$(if $(filter thread,$(SAN)),$(THREADED),$(TESTS)),$(if $(call is_wanted,$(test)),$(test)))
# What the Python tests start or put below the programs.
HELPERS := $(addprefix $(BUILD)/tests/,faultfs.so usbredir_board umockdev_board preload_fix.so bare_reader)
BENCHES := $(patsubst tests/%.c,%,$(wildcard tests/bench_*.c))

objects  = $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/main.c,$(wildcard $(1)/*.c)))
ARCHIVES := $(FOLDERS:%=$(BUILD)/lib%.a)
# capture/sim*.c alone serves the hand tool; the rest of capture/ wants the loop.
SIM_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(filter-out capture/sim_source.c,$(wildcard capture/sim*.c)))

.PHONY: all deps demo demo-lackey test check check-clickhouse bench lint fuzz valgrind layers format install \
	clean help install-daemon install-units install-tools uninstall check-programs units deb lint-deb test-package \
	dist picture check-fresh test-machine FORCE
.DEFAULT_GOAL := all
.SECONDARY:
.DELETE_ON_ERROR:

COMPLETIONS := $(addprefix $(BUILD)/completion/,buscap.bash _buscap buscapd.bash _buscapd)

all: $(BUILD)/buscapd $(BUILD)/buscap $(COMPLETIONS) ## build both programs into build/

# Where everything may be missing yet, install first.
ifneq ($(filter deps demo demo-lackey test,$(MAKECMDGOALS)),)
$(SOURCES:%.c=$(BUILD)/%.o) $(TESTS:%=$(BUILD)/tests/%.o): | deps
$(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/board/*.c tests/support/*.c)): | deps
endif

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) $(BC_CFLAGS) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

SUPPORT_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))
$(TESTS:%=$(BUILD)/tests/%.o) $(SUPPORT_OBJECTS): BC_CFLAGS += $(test_cflags)

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
	$(Q)$(CC) $(BC_LDFLAGS) $(LDFLAGS) -o $@ $^ $(call pkg_libs,$(CLI_PKGS))

# What the shells complete, from the programs' own tables.
$(BUILD)/completion/%.bash: $(BUILD)/% cli/completion.sh
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q)cli/completion.sh bash $< >$@

$(BUILD)/completion/_%: $(BUILD)/% cli/completion.sh
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q)cli/completion.sh zsh $< >$@

# main() of the tests, and what they share.
$(BUILD)/libsupport.a: $(SUPPORT_OBJECTS)
	$(say) AR $@
	$(Q)rm -f $@ && ar rcs $@ $^

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/libsupport.a $(BUILD)/libboard.a $(BUILD)/libcli.a $(BUILD)/libdaemon.a $(BUILD)/libcapture.a $(BUILD)/libformats.a
	$(say) LINK $@
	$(Q)$(CC) $(BC_LDFLAGS) $(LDFLAGS) -o $@ $^ $(call pkg_libs,$(TEST_PKGS))

# Tests of what drives a board: with a kernel's USB in software, tests/board/usbfs.h.
USBFS_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/board/usbfs*.c))
$(USBFS_OBJECTS): # being named, they don't make the general rule above look nearer

define link_usb
$(BUILD)/tests/$(1)%: $(BUILD)/tests/$(1)%.o $(USBFS_OBJECTS) $(BUILD)/libsupport.a $(BUILD)/libboard.a $(BUILD)/libdaemon.a $(BUILD)/libcapture.a $(BUILD)/libformats.a
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
	@tests/deps.sh $(LIBRARIES) -- $(TOOLS) -- $(PYTHON_MODULES)

demo: deps all ## record the simulated bus for a few seconds and look at the result
	@tests/demo.sh $(BUILD)

demo-lackey: deps all ## put a real program's trace on the bus, record it and look at the result
	@tests/demo_lackey.sh $(BUILD)

test: deps check ## install, build and run all tests

# Tests mostly wait: two more at a time than there are cores, but under the thread sanitizer.
empty :=
PYTEST_FLAGS = -n $(if $(filter thread,$(SAN)),$(CORES) -m threads,$(shell expr $(CORES) + 2)) \
	$(if $(ONLY),-k '$(subst $(empty) $(empty), or ,$(strip $(ONLY)))') --junitxml $(BUILD)/tests/junit.xml

check: all $(CHECKED:%=$(BUILD)/tests/%) $(HELPERS) ## run all tests; with SAN=thread those with threads
	@BUILD=$(BUILD) $(PYTHON) -m pytest -q $(PYTEST_FLAGS)

test-machine: deb $(BUILD)/tests/usbredir_board ## the packages in a whole machine under QEMU, with a board; RUNS=N times
	@tests/deps.sh -- $(MACHINE_TOOLS) -- $(PYTHON_MODULES)
	@BUILD=$(BUILD) $(PYTHON) tests/machine/run.py build/deb

check-clickhouse: all ## load rowbinary into a clickhouse-server on loopback and check it; installs one
	@BUILD=$(BUILD) $(PYTHON) tests/check_clickhouse.py

# With SHORT=1 tests of what differs most between releases, the libraries and tools, that don't take long.
RELEASES    ?= bookworm trixie
SHORT       ?=
FRESH_SHORT := test_server test_config test_usb_find test_usb_board test_segment_alloc test_metadata
check-fresh: ## demo, test, deb, units, install in clean roots of RELEASES (bookworm trixie), as root; SHORT=1
	@tests/deps.sh -- $(FRESH_TOOLS)
	@ONLY='$(if $(SHORT),$(FRESH_SHORT),$(ONLY))' tests/fresh.sh $(RELEASES)

bench: all $(BENCHES:%=$(BUILD)/tests/%) ## print speed and size ratios against lz4, memcpy, scanf and printf
	@BUILD=$(BUILD) $(PYTHON) tests/bench.py

picture: all $(HELPERS) ## draw docs/top.svg: buscap top as it looks on a recording, in six minutes
	@tests/deps.sh $(LIBRARIES) -- $(TOOLS) -- $(PYTHON_MODULES)
	@BUILD=$(BUILD) $(PYTHON) tests/picture.py docs/top.svg

lint: ## clang-format, clang-tidy, cppcheck and gcc -fanalyzer
	@tests/deps.sh $(LIBRARIES) -- $(TOOLS) $(LINT_TOOLS)
	$(say) LINT clang-format
	$(Q)clang-format --dry-run -Werror $(wildcard $(addsuffix /*.[ch],$(FOLDERS) tests tests/board tests/support))
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
VALGRIND := $(patsubst tests/%.c,%,$(shell grep -l '^TEST_VALGRIND;' tests/test_*.c))

valgrind: $(VALGRIND:%=valgrind/%) ## run the tests that open and close devices under valgrind

valgrind/%: $(BUILD)/tests/%
	$(say) VALGRIND $<
	$(Q)USB_RUN_FEW=1 valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite \
		--error-exitcode=9 $< >$<.valgrind.log 2>&1 || { tail -n 40 $<.valgrind.log; exit 1; }

layers: ## fail if an include crosses the layers
	@tests/layers.sh

format: ## reformat the sources
	$(Q)clang-format -i $(wildcard $(addsuffix /*.[ch],$(FOLDERS) tests tests/board tests/support))

# Where `make install` puts what is no program. The configuration's place is the program's own. zsh looks
# for completions in site-functions; vendor-completions is for Debian's packages.
UNITDIR ?= $(PREFIX)/lib/systemd/system
UDEVDIR ?= $(PREFIX)/lib/udev
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
CONFDIR := /etc/buscapd
DATADIR := $(PREFIX)/share
UNITS   := $(addprefix build/systemd/,buscapd.service buscapd@.service buscapd.socket buscapd@.socket)
DROPINS := build/systemd/metrics.conf build/systemd/network.conf
# For those who run the daemon; the rest is about traces, and goes with the hand tool.
DAEMON_DOCS := $(wildcard $(addprefix docs/,api.md board-protocol.md configuration.md install.md \
	live.md messages.md openapi.json raw-capture.md usb.md))
TOOL_DOCS   := $(filter-out docs/architecture.md docs/README.md $(DAEMON_DOCS),$(wildcard docs/*.md docs/*.svg))

# What depends on PREFIX, and what both services have in common, is filled in.
build/systemd/%: FORCE
	@mkdir -p $(@D)
	$(Q)sed -e '/^@common@$$/{r systemd/service.common' -e 'd}' systemd/$*.in >$@.tmp
	$(Q)sed -e 's|@sbindir@|$(PREFIX)/sbin|' -e 's|@datadir@|$(DATADIR)|' $@.tmp >$@
	$(Q)rm -f $@.tmp

FORCE:

install: install-daemon install-tools ## install everything below DESTDIR and PREFIX

# install_pages MANUAL-PAGES, install_completion PROGRAM, install_docs PACKAGE DOCUMENTS
define install_pages
	$(foreach page,$(1),install -D -m 644 $(page) \
		$(DESTDIR)$(DATADIR)/man/man$(patsubst .%,%,$(suffix $(page)))/$(notdir $(page)) &&) :
endef
define install_completion
	install -D -m 644 $(BUILD)/completion/$(1).bash \
		$(DESTDIR)$(DATADIR)/bash-completion/completions/$(1)
	install -D -m 644 $(BUILD)/completion/_$(1) \
		$(DESTDIR)$(ZSHDIR)/_$(1)
endef
define install_docs
	install -d $(DESTDIR)$(DATADIR)/doc/$(1)
	install -m 644 $(2) $(DESTDIR)$(DATADIR)/doc/$(1)
endef

install-daemon: $(BUILD)/buscapd $(filter %/buscapd.bash %/_buscapd,$(COMPLETIONS)) install-units
	install -D -m 755 $(BUILD)/buscapd $(DESTDIR)$(PREFIX)/sbin/buscapd
	$(call install_pages,$(wildcard docs/man/buscapd*.[1-9]))
	$(call install_completion,buscapd)
	$(call install_docs,buscapd,$(DAEMON_DOCS))

# All that the daemon's service consists of, but the daemon.
install-units: $(UNITS) $(DROPINS)
	install -d $(DESTDIR)$(UNITDIR) $(DESTDIR)$(DATADIR)/buscapd
	install -m 644 $(UNITS) $(DESTDIR)$(UNITDIR)
	install -m 644 $(DROPINS) $(DESTDIR)$(DATADIR)/buscapd
	install -D -m 644 systemd/60-buscapd.rules $(DESTDIR)$(UDEVDIR)/rules.d/60-buscapd.rules
	install -D -m 644 systemd/buscapd.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/buscapd.conf
	install -D -m 644 systemd/buscapd.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/buscapd.conf
	install -D -m 644 systemd/buscapd.preset \
		$(DESTDIR)$(PREFIX)/lib/systemd/system-preset/60-buscapd.preset
	install -d $(DESTDIR)$(CONFDIR)/conf.d $(DESTDIR)$(CONFDIR)/boards
	[ -e $(DESTDIR)$(CONFDIR)/buscapd.conf ] || \
		install -m 644 systemd/buscapd.conf $(DESTDIR)$(CONFDIR)/buscapd.conf

install-tools: $(BUILD)/buscap $(filter %/buscap.bash %/_buscap,$(COMPLETIONS))
	install -D -m 755 $(BUILD)/buscap $(DESTDIR)$(PREFIX)/bin/buscap
	$(call install_pages,$(filter-out docs/man/buscapd%,$(wildcard docs/man/*.[1-9])))
	$(call install_completion,buscap)
	$(call install_docs,buscap-tools,$(TOOL_DOCS))

# The least that shows that the programs work where they were built: what is recorded is what was sent.
check-programs: all
	rm -rf $(BUILD)/check-programs
	$(BUILD)/buscapd -c systemd/buscapd.conf --check-config
	$(BUILD)/buscap sim --seed 1 --count 1000000 -O bcp1 -o $(BUILD)/check-programs.bcp1
	$(BUILD)/buscap convert -O byu -o $(BUILD)/check-programs.byu $(BUILD)/check-programs.bcp1
	$(BUILD)/buscapd --once --source sim:seed=1,rate=max,count=1000000 -o $(BUILD)/check-programs
	$(BUILD)/buscap verify $(BUILD)/check-programs/*.byu.lz4
	cat $(BUILD)/check-programs/*.byu.lz4 | lz4 -dc | cmp - $(BUILD)/check-programs.byu

units: ## check units, udev rule, user and directories with systemd's own tools
	@tests/deps.sh -- systemd-analyze:systemd udevadm:udev
	$(Q)rm -rf build/units && install -D -m 755 /dev/null build/units/usr/sbin/buscapd
	$(Q)$(MAKE) --no-print-directory install-units DESTDIR=build/units PREFIX=/usr >build/units/install.log
	@tests/units.sh build/units

# The configuration stays, and what was recorded; user and group too.
uninstall: ## remove what install put there, but for the configuration
	rm -f $(DESTDIR)$(PREFIX)/sbin/buscapd $(DESTDIR)$(PREFIX)/bin/buscap
	rm -f $(addprefix $(DESTDIR)$(UNITDIR)/,$(notdir $(UNITS)))
	rm -f $(DESTDIR)$(UDEVDIR)/rules.d/60-buscapd.rules
	rm -f $(DESTDIR)$(PREFIX)/lib/sysusers.d/buscapd.conf $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/buscapd.conf
	rm -f $(DESTDIR)$(PREFIX)/lib/systemd/system-preset/60-buscapd.preset
	rm -f $(DESTDIR)$(DATADIR)/man/man?/buscap[d.-]* \
		$(addprefix $(DESTDIR)$(DATADIR)/bash-completion/completions/,buscap buscapd) \
		$(addprefix $(DESTDIR)$(ZSHDIR)/,_buscap _buscapd)
	rm -rf $(DESTDIR)$(DATADIR)/buscapd $(addprefix $(DESTDIR)$(DATADIR)/doc/,buscapd buscap-tools)

# The packages are built from a copy of the tree as it stands, uncommitted changes too.
PACKAGE_DIR := build/deb

deb: ## build the Debian packages into build/deb/
	@tests/deps.sh $(filter-out $(TEST_LIBRARIES),$(LIBRARIES)) $(PACKAGE_LIBRARIES) -- $(PACKAGE_TOOLS)
	$(Q)tests/package.sh $(VERSION) $(PACKAGE_DIR)

lint-deb: deb ## lintian over the packages: no error, no warning
	@tests/deps.sh -- lintian:lintian
	$(say) LINT lintian
	$(Q)lintian --allow-root --pedantic --tag-display-limit 0 --fail-on error,warning $(PACKAGE_DIR)/*.changes

test-package: deb ## install, upgrade, remove and purge the packages in a root of SUITE (as root)
	@tests/deps.sh -- mmdebstrap:mmdebstrap shellcheck:shellcheck -- $(PYTHON_MODULES)
	$(Q)PACKAGES=$(PACKAGE_DIR) $(PYTHON) -m pytest -v tests/check_package.py

dist: ## pack the sources of the last commit into build/buscapd-VERSION.tar.gz
	@mkdir -p build
	$(Q)git archive --prefix=buscapd-$(VERSION)/ HEAD | gzip -n -9 >build/buscapd-$(VERSION).tar.gz
	@ls -l build/buscapd-$(VERSION).tar.gz

clean: ## remove what was built
	rm -rf build demo

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo '  SAN=address,undefined or SAN=thread builds with sanitizers, below build/'
	@echo '  ONLY="WORD..." is of the tests those whose name has one of the words'
	@echo '  V=1 shows the commands; CC, CFLAGS, LDFLAGS, PREFIX, DESTDIR are respected'

-include $(wildcard $(BUILD)/*/*.d $(BUILD)/tests/board/*.d $(BUILD)/tests/support/*.d build/fuzz/*/*.d)
