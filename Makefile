# buscapd: one Makefile, not recursive; mk/ has the rest by purpose. `make help` lists the targets.

VERSION := 0.1.0

SAN    ?=
# With AddressSanitizer clang builds the programs, the tests and the fuzz targets from the same objects.
IS_ASAN := $(filter address%,$(SAN))
ifeq ($(origin CC),default)
CC := $(if $(IS_ASAN),clang,gcc)
endif
# Sanitizers make -O2 slow to compile, and need only the lines.
CFLAGS ?= $(if $(SAN),-O1 -g1,-O2 -g)
PREFIX ?= /usr/local
PYTHON ?= /usr/bin/python3
V      ?=

# Every sanitizer has its own build directory.
comma := ,
BUILD := build$(if $(SAN),/$(subst $(comma),-,$(SAN)))
Q     := $(if $(V),,@)
CORES := $(shell nproc)
# All cores, unless the user or another make says how many jobs. `make clean all` is two steps.
ifeq ($(filter clean,$(MAKECMDGOALS))$(findstring -j,$(shell echo "$$MAKEFLAGS")),)
MAKEFLAGS += -j$(CORES)
endif
say    = $(if $(V),@:,@printf '  %-4s %s\n')

# D3 of the installed package, or only this file of it: mk/packages.mk. D3=PATH is for systems without the package.
D3_OF_PACKAGE := /usr/share/nodejs/d3/dist/d3.min.js
D3            := $(firstword $(wildcard $(D3_OF_PACKAGE)) build/d3.min.js)

LAYERS  := formats capture daemon cli
SOURCES := $(wildcard $(LAYERS:=/*/*.c))
OBJECTS := $(SOURCES:%.c=$(BUILD)/%.o)

FORMATS_PKGS := liblz4 zlib libzstd liblzma libxxhash libdeflate jansson libelf
# Loaded when needed: formats/base/late_library.h. AddressSanitizer's check for leaks may crash with such libraries, so
# there the programs are linked with them.
LATE_PKGS    := libmicrohttpd libsystemd
ASAN_PKGS    := $(if $(IS_ASAN),$(LATE_PKGS))
DAEMON_PKGS  := $(FORMATS_PKGS) libuv inih libusb-1.0 $(ASAN_PKGS)
CLI_PKGS     := $(FORMATS_PKGS) ncursesw $(filter-out libsystemd,$(ASAN_PKGS))
PROGRAM_PKGS := $(DAEMON_PKGS) ncursesw $(ASAN_PKGS)

# pkg-config runs when something is compiled. $(call pkg_config,ARGUMENTS,TARGET) stops make if packages of TARGET are missing,
# but not make -n.
pkg_config = $(shell pkg-config $(1) 2>/dev/null)$(if $(filter-out 0,$(.SHELLSTATUS)),$(if $(is_dry_run),,$(error libraries are missing: run "make $(2)")))
pkg_cflags = $(eval pkg_cflags := $$(call pkg_config,--cflags $(PROGRAM_PKGS) $(LATE_PKGS),deps))$(pkg_cflags)
pkg_libs   = $(call pkg_config,--libs $(1),deps) -lm

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wwrite-strings -Wundef -Wvla -Werror=implicit-function-declaration
BC_CFLAGS = -std=c11 -D_GNU_SOURCE -DBC_VERSION='"$(VERSION)"' -I. -pthread $(WARNINGS) \
	$(if $(filter true,$(CI)),-Werror) \
	$(if $(SAN),-fsanitize=$(SAN)$(if $(IS_ASAN),$(comma)fuzzer-no-link) -fno-omit-frame-pointer -fno-sanitize-recover=all) \
	$(if $(IS_ASAN),-D__SANITIZE_ADDRESS__) \
	$(pkg_cflags)
# Programs start faster with the sanitizer's library in them, as clang does; with AddressSanitizer, also at a fixed
# address: by a fifth.
SAN_LDFLAGS = -fsanitize=$(SAN) $(if $(IS_ASAN),-no-pie) $(if $(filter thread,$(SAN)),-static-libtsan)
BC_LDFLAGS = -pthread $(if $(SAN),$(SAN_LDFLAGS)) $(filter -fprofile%,$(CFLAGS))
link = $(say) LINK $@; $(CC) $(BC_LDFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(call pkg_libs,$(1)) -ldl

# A layer's archive with those that it needs.
LIB_FORMATS := $(BUILD)/libformats.a
LIB_CAPTURE := $(BUILD)/libcapture.a $(LIB_FORMATS)
LIB_DAEMON  := $(BUILD)/libdaemon.a $(LIB_CAPTURE)
# The command-line tool links the simulated bus, without the loop and USB.
SIM_OBJECTS := $(filter $(BUILD)/capture/sim/%,$(OBJECTS))

COMPLETIONS := $(addprefix $(BUILD)/completion/,buscap.bash buscap.fish _buscap buscapd.bash buscapd.fish _buscapd)
MANUALS     := $(patsubst docs/man/%.in,$(BUILD)/man/%,$(wildcard docs/man/*.in))

.PHONY: all demo demo-lackey picture dist clean help FORCE
.DEFAULT_GOAL := all
.SECONDARY:
.DELETE_ON_ERROR:

all: $(BUILD)/buscapd $(BUILD)/buscap $(COMPLETIONS) $(MANUALS) ## build both programs into build/

# How much is tested: test, ci or nightly.
LEVEL ?= test

include mk/packages.mk mk/tests.mk mk/torture.mk mk/lint.mk mk/install.mk mk/ci.mk

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) $(BC_CFLAGS) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# One archive a layer, without the programs' main functions.
define archive
$(BUILD)/lib$(1).a: $(filter-out %/main.o,$(filter $(BUILD)/$(1)/%,$(OBJECTS)))
	$$(say) AR $$@
	$$(Q)rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach layer,$(LAYERS),$(eval $(call archive,$(layer))))

# The page of `buscap web` and of reports: one document, part of the program. Every build directory shares it.
PAGE := build/cli/web/page.html
PAGE_SOURCES := cli/web/page/page.html cli/web/page/style.css $(sort $(wildcard cli/web/page/*.js))

$(PAGE): cli/web/page/bundle.py $(D3) $(PAGE_SOURCES)
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q)$(PYTHON) cli/web/page/bundle.py $(D3) $(PAGE_SOURCES) >$@

$(BUILD)/cli/web/page.o analyze/cli/web/page.c: $(PAGE)
$(BUILD)/daemon/api/api.o: docs/openapi.json

build/d3.min.js:
	@tests/tools/deps.sh $@:node-d3

# The commit, for --version: git's, or that in a tarball. Only the programs are linked again when it changes, and not by
# `sudo make install`, which installs what was built.
$(BUILD)/commit: $(if $(filter install%,$(MAKECMDGOALS)),,FORCE)
	@mkdir -p $(@D)
	$(Q)new=$$(exec 2>/dev/null; [ -e .git ] || exec cat commit; \
		git --no-optional-locks describe --always --dirty --abbrev=12 --exclude='*'); \
		[ -e $@ ] && [ "$$new" = "$$(cat $@)" ] || echo "$$new" >$@

$(BUILD)/commit.o: $(BUILD)/commit
	$(Q)echo "const char bc_commit[] = \"$$(cat $<)\";" | $(CC) $(BC_CFLAGS) $(CPPFLAGS) $(CFLAGS) -x c -c -o $@ -

$(BUILD)/buscapd: $(BUILD)/daemon/main/main.o $(BUILD)/commit.o $(LIB_DAEMON)
	$(call link,$(DAEMON_PKGS))

$(BUILD)/buscap: $(BUILD)/cli/term/main.o $(BUILD)/commit.o $(BUILD)/libcli.a $(SIM_OBJECTS) $(LIB_FORMATS)
	$(call link,$(CLI_PKGS))

# Shell completions come from the programs' own option tables.
$(BUILD)/completion/%.bash: $(BUILD)/% cli/completion.sh
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q)cli/completion.sh bash $< >$@

$(BUILD)/completion/%.fish: $(BUILD)/% cli/completion.sh
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q)cli/completion.sh fish $< >$@

$(BUILD)/completion/_%: $(BUILD)/% cli/completion.sh
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q)cli/completion.sh zsh $< >$@

# So do the options and settings in the manual pages.
$(BUILD)/man/buscap.1: $(BUILD)/buscap
$(filter-out %/buscap.1,$(MANUALS)): $(BUILD)/buscapd
$(BUILD)/man/%: docs/man/%.in docs/man/manual.py docs/tables.py
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q)$(PYTHON) -B docs/man/manual.py $< $(filter $(BUILD)/buscap%,$^) >$@

demo: all ## record the simulated bus for a few seconds and look at the result
	@tests/tools/demo.sh $(BUILD)

demo-lackey: all ## put a real program's trace on the bus, record it and look at the result
	@tests/tools/demo_lackey.sh $(BUILD)

picture: all $(HELPERS) ## draw docs/top.svg, docs/web.png and docs/web-zoom.png, in six minutes
	@BUILD=$(BUILD) PYTHONPATH=tests/support $(PYTHON) tests/tools/page_picture.py docs/web.png docs/web-zoom.png
	@BUILD=$(BUILD) PYTHONPATH=tests/support $(PYTHON) tests/tools/picture.py docs/top.svg

dist: ## pack the sources of the last commit into build/buscapd-VERSION.tar.gz
	@mkdir -p build
	$(Q)git archive --prefix=buscapd-$(VERSION)/ --add-virtual-file=buscapd-$(VERSION)/commit:$$(git rev-parse --short=12 HEAD) \
		HEAD | gzip -n -9 >build/buscapd-$(VERSION).tar.gz
	@ls -l build/buscapd-$(VERSION).tar.gz

clean: ## remove everything that was built
	rm -rf build demo

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' Makefile mk/*.mk
	@echo '  SAN=address,undefined or SAN=thread builds with sanitizers, below build/'
	@echo '  ONLY="WORD..." runs only the tests whose names contain one of the words'
	@echo '  V=1 shows the commands; CC, CFLAGS, LDFLAGS, PREFIX, DESTDIR are respected'

FORCE:

-include $(OBJECTS:.o=.d) $(wildcard $(BUILD)/tests/*/*.d $(BUILD)/tests/*/*/*.d)
