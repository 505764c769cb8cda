# The Debian packages that the targets need, and their installation.
#
# Each set has SET_LIBRARIES, SET_TOOLS and SET_MODULES, as needed, and SET_FOR: the targets that need it. A package is
# written NAME:DEPENDENCY[,DEPENDENCY]... NAME tells whether it is there: a pkg-config module or a file for libraries, a command
# for tools, or a Python module. A DEPENDENCY is what debian/control would have, without spaces. A file below build/ is
# copied from its package, which is not installed.
#
# The end of this file installs what the goals need, before make looks at any rule, so that nothing runs too early. Plain `make`, `make check` and `make install` install nothing; without the libraries they stop.

SETS := BUILD DEMO TEST VALGRIND FUZZ COVERAGE LINT CI DEB BUILDER LINTIAN ROOT FRESH UNITS MACHINE GADGET

PACKAGE_RUNS := deps-ci ci nightly nightly-release
CI_RUNS := deps-ci ci nightly% picture $(if $(filter ci nightly,$(LEVEL)),test)

BUILD_FOR := deps% demo% test% docs bench% fuzz% valgrind torture% lint lint-changed deb lint-deb check-fleet% $(CI_RUNS)
BUILD_LIBRARIES := \
	libuv:libuv1-dev \
	liblz4:liblz4-dev \
	zlib:zlib1g-dev \
	libzstd:libzstd-dev \
	liblzma:liblzma-dev \
	libxxhash:libxxhash-dev \
	libdeflate:libdeflate-dev \
	libelf:libelf-dev \
	jansson:libjansson-dev \
	inih:libinih-dev \
	libmicrohttpd:libmicrohttpd-dev \
	libusb-1.0:libusb-1.0-0-dev \
	ncursesw:libncurses-dev \
	libsystemd:libsystemd-dev \
	$(D3):node-d3
BUILD_TOOLS := \
	pkg-config:pkgconf \
	$(PYTHON):python3:any \
	lz4:lz4<!nocheck>

DEMO_FOR := deps% demo test torture% bench-directory bench-web $(CI_RUNS)
DEMO_TOOLS := curl:curl

TEST_FOR := deps-test test tests valgrind torture% test-package test-machine check-fleet% $(CI_RUNS)
TEST_LIBRARIES := cmocka:libcmocka-dev
TEST_TOOLS := \
	zstd:zstd \
	xz:xz-utils \
	mandoc:mandoc \
	groff:groff-base \
	file:file \
	xxhsum:xxhash \
	strace:strace \
	tmux:tmux \
	jq:jq
TEST_MODULES := \
	pytest:python3-pytest \
	xdist:python3-pytest-xdist \
	pytest_timeout:python3-pytest-timeout \
	numpy:python3-numpy \
	lz4:python3-lz4 \
	xxhash:python3-xxhash \
	zstandard:python3-zstandard

VALGRIND_FOR := demo-lackey bench-instructions valgrind $(CI_RUNS)
VALGRIND_TOOLS := valgrind:valgrind

FUZZ_FOR := fuzz% $(CI_RUNS)
FUZZ_TOOLS := clang:clang$(comma)libclang-rt-dev llvm-symbolizer:llvm

COVERAGE_FOR := fuzz-coverage
COVERAGE_TOOLS := llvm-cov:llvm

LINT_FOR := lint lint-format lint-cppcheck lint-changed format $(CI_RUNS)
LINT_TOOLS := clang-format:clang-format clang-tidy:clang-tidy cppcheck:cppcheck

# Tests that need these are skipped without them.
CI_FOR := $(CI_RUNS)
CI_TOOLS := \
	mkfs.btrfs:btrfs-progs \
	vcd2fst:gtkwave \
	sigrok-cli:sigrok-cli \
	protoc:protobuf-compiler \
	fish:fish \
	zsh:zsh \
	chromium:chromium \
	chromedriver:chromium-driver
CI_MODULES := selenium:python3-selenium pandas:python3-pandas

# With those of BUILD, the Build-Depends of debian/control, which `make docs` writes.
DEB_FOR := deb lint-deb test-package test-machine $(PACKAGE_RUNS)
DEB_LIBRARIES := systemd:systemd-dev|systemd(<<254) udev:systemd-dev|udev(<<254) $(D3_OF_PACKAGE):node-d3
DEB_TOOLS := dh:debhelper-compat(=13)$(comma)dh-sequence-installsysusers dh_python3:dh-sequence-python3

BUILDER_FOR := $(DEB_FOR)
BUILDER_TOOLS := dpkg-buildpackage:dpkg-dev g++:build-essential

LINTIAN_FOR := lint-deb test-package $(PACKAGE_RUNS)
LINTIAN_TOOLS := lintian:lintian shellcheck:shellcheck

ROOT_FOR := test-package test-machine check-fresh $(PACKAGE_RUNS)
ROOT_TOOLS := mmdebstrap:mmdebstrap

FRESH_FOR := check-fresh $(PACKAGE_RUNS)
FRESH_TOOLS := unshare:util-linux git:git

UNITS_FOR := units $(PACKAGE_RUNS)
UNITS_TOOLS := systemd-analyze:systemd udevadm:udev

MACHINE_FOR := test-machine
MACHINE_LIBRARIES := libusbredirparser-0.5:libusbredirparser-dev
MACHINE_TOOLS := \
	qemu-system-x86_64:qemu-system-x86$(comma)qemu-system-common$(comma)seabios$(comma)ipxe-qemu \
	busybox:busybox-static \
	cpio:cpio \
	depmod:kmod \
	mkfs.ext4:e2fsprogs \
	fakeroot:fakeroot \
	xxhsum:xxhash

GADGET_FOR := gadget
GADGET_LIBRARIES := libdeflate:libdeflate-dev
GADGET_TOOLS := pkg-config:pkgconf

.PHONY: deps deps-test deps-ci build-depends
deps: ## install what the build and the demo need, or name it
deps-test: ## the same for make test
deps-ci: ## the same for make ci
deps deps-test deps-ci:
	@:

# For docs/tables.py.
control_list := $(BUILD_LIBRARIES) $(BUILD_TOOLS) $(DEB_LIBRARIES) $(DEB_TOOLS)
build-depends:
	@printf '%s\n' $(foreach one,$(control_list),'$(one)') | sed -e 's/^[^:]*://' -e 's/,/\n/g'

# $(call packages,KIND): the packages of this kind that the goals need. D3 is not copied if node-d3 is installed.
needed    := $(strip $(foreach set,$(SETS),$(if $(filter $($(set)_FOR),$(MAKECMDGOALS)),$(set))))
packages   = $(foreach one,$(filter-out $(if $(filter DEB,$(needed)),build/%),$(foreach set,$(needed),$($(set)_$(1)))),'$(one)')
is_dry_run := $(findstring n,$(firstword -$(MAKEFLAGS)))

ifneq ($(if $(is_dry_run),,$(needed)),)
$(shell tests/tools/deps.sh $(call packages,LIBRARIES) -- $(call packages,TOOLS) -- $(call packages,MODULES) >&2)
$(if $(filter-out 0,$(.SHELLSTATUS)),$(error packages are missing))
endif
