# The Debian packages that the build, the tests and the other targets need. Each list is NAME:PACKAGE[,PACKAGE]...;
# NAME tells whether the package is there: a pkg-config module or a file for libraries, a command for tools, or a
# Python module.
# PACKAGE is A/B where releases differ: A, or B where there is no A. A file below build/ is copied from the package, which
# is not installed.

LIBRARIES := \
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
	libcurl:libcurl4-gnutls-dev \
	ncursesw:libncurses-dev \
	libsystemd:libsystemd-dev \
	$(D3):node-d3
TEST_LIBRARIES := \
	cmocka:libcmocka-dev
TOOLS := \
	pkg-config:pkg-config \
	lz4:lz4 \
	curl:curl \
	python3:python3
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
	pytest_timeout:python3-pytest-timeout
FUZZ_TOOLS := clang:clang$(comma)libclang-rt-dev llvm-symbolizer:llvm
LINT_TOOLS := clang-format:clang-format clang-tidy:clang-tidy cppcheck:cppcheck
# Tests that need these are skipped without them.
CI_TOOLS := $(FUZZ_TOOLS) $(LINT_TOOLS) \
	valgrind:valgrind \
	mkfs.btrfs:btrfs-progs \
	vcd2fst:gtkwave \
	sigrok-cli:sigrok-cli \
	protoc:protobuf-compiler \
	zsh:zsh \
	chromium:chromium \
	chromedriver:chromium-driver
CI_MODULES := selenium:python3-selenium
PACKAGE_LIBRARIES := systemd:systemd-dev/systemd udev:systemd-dev/udev $(D3_OF_PACKAGE):node-d3
PACKAGE_TOOLS := \
	pkg-config:pkg-config \
	lz4:lz4 \
	dh:debhelper \
	dpkg-buildpackage:dpkg-dev$(comma)build-essential
FRESH_TOOLS := mmdebstrap:mmdebstrap unshare:util-linux git:git
MACHINE_LIBRARIES := libusbredirparser-0.5:libusbredirparser-dev
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

# $(call deps,LIBRARIES,TOOLS,MODULES) installs what is missing of these and of what the build needs.
deps = tests/tools/deps.sh $(LIBRARIES) $(1) -- $(TOOLS) $(2) -- $(3)

.PHONY: deps deps-test deps-ci
deps: ## install what the build and the demo need, or name it
	@$(call deps)

deps-test: ## the same for make test
	@$(call deps,$(TEST_LIBRARIES),$(TEST_TOOLS),$(TEST_MODULES))

deps-ci: ## the same for make ci
	@$(call deps,$(TEST_LIBRARIES),$(TEST_TOOLS) $(CI_TOOLS),$(TEST_MODULES) $(CI_MODULES))
