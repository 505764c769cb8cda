# Installation, Debian packages, and the checks of both.

.PHONY: install install-daemon install-units install-tools install-python uninstall check-programs units deb lint-deb test-package

UNITDIR ?= $(PREFIX)/lib/systemd/system
UDEVDIR ?= $(PREFIX)/lib/udev
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
# Where Python looks for modules below PREFIX.
PYTHONDIR ?= $(eval PYTHONDIR := $(or $(shell $(PYTHON) -c 'import site; print(site.getsitepackages(["$(PREFIX)"])[-1])'),\
	$(PREFIX)/lib/python3/dist-packages))$(PYTHONDIR)
CONFDIR := /etc/buscapd
DATADIR := $(PREFIX)/share
DOCDIR  := $(DATADIR)/doc
BASHDIR := $(DATADIR)/bash-completion/completions
FISHDIR := $(DATADIR)/fish/vendor_completions.d

# The documents of the daemon and of the Python module; the others are about traces and go with the command-line tool.
DAEMON_DOCS := $(wildcard $(addprefix docs/,alerts.yml api.md board-protocol.md configuration.md dashboard.json \
	install.md live.md messages.md openapi.json test-board.md usb.md))
PYTHON_DOCS := docs/python.md
TOOL_DOCS   := $(filter-out docs/architecture.md docs/README.md $(DAEMON_DOCS) $(PYTHON_DOCS),$(wildcard docs/*.md docs/*.svg docs/*.png))
UNITS       := $(addprefix build/systemd/,buscapd.service buscapd@.service buscapd.socket buscapd@.socket)
DROPINS     := build/systemd/metrics.conf build/systemd/network.conf

# Everything that is installed, as SOURCE:DESTINATION; `uninstall` removes the same files. Programs are those in bin
# and sbin.
into   = $(foreach file,$(1),$(file):$(2)/$(notdir $(file)))
manual = $(foreach page,$(1),$(page):$(DATADIR)/man/man$(patsubst .%,%,$(suffix $(page)))/$(notdir $(page)))
UNIT_FILES := \
	$(call into,$(UNITS),$(UNITDIR)) \
	$(call into,$(DROPINS),$(DATADIR)/buscapd) \
	systemd/60-buscapd.rules:$(UDEVDIR)/rules.d/60-buscapd.rules \
	systemd/buscapd.catalog:$(PREFIX)/lib/systemd/catalog/buscapd.catalog \
	systemd/buscapd.sysusers:$(PREFIX)/lib/sysusers.d/buscapd.conf \
	systemd/buscapd.tmpfiles:$(PREFIX)/lib/tmpfiles.d/buscapd.conf \
	systemd/buscapd.preset:$(PREFIX)/lib/systemd/system-preset/60-buscapd.preset
DAEMON_FILES := \
	$(BUILD)/buscapd:$(PREFIX)/sbin/buscapd \
	$(BUILD)/completion/buscapd.bash:$(BASHDIR)/buscapd \
	$(call into,$(BUILD)/completion/buscapd.fish,$(FISHDIR)) \
	$(BUILD)/completion/_buscapd:$(ZSHDIR)/_buscapd \
	$(call manual,$(filter %.8 %.5,$(MANUALS))) \
	$(call into,$(DAEMON_DOCS),$(DOCDIR)/buscapd)
TOOL_FILES := \
	$(BUILD)/buscap:$(PREFIX)/bin/buscap \
	$(BUILD)/completion/buscap.bash:$(BASHDIR)/buscap \
	$(call into,$(BUILD)/completion/buscap.fish,$(FISHDIR)) \
	$(BUILD)/completion/_buscap:$(ZSHDIR)/_buscap \
	$(call manual,$(filter %.1,$(MANUALS)) docs/man/buscap-formats.5) \
	$(call into,$(TOOL_DOCS),$(DOCDIR)/buscap-tools)
# The Python module, the programs that use it, and their units.
PYTHON_FILES = \
	$(call into,$(wildcard python/buscap-*),$(PREFIX)/bin) \
	$(call manual,$(wildcard docs/man/buscap-ship.1)) \
	$(call into,build/systemd/buscap-ship.service systemd/buscap-ship.timer,$(UNITDIR)) \
	$(call into,$(wildcard python/buscap/*.py),$(PYTHONDIR)/buscap) \
	$(call into,$(PYTHON_DOCS),$(DOCDIR)/python3-buscap)

source_of      = $(firstword $(subst :, ,$(1)))
destination_of = $(lastword $(subst :, ,$(1)))
define install_file
	$(Q)install -D -m $(if $(filter %/bin %/sbin,$(patsubst %/,%,$(dir $(call destination_of,$(1))))),755,644) \
		$(call source_of,$(1)) '$(DESTDIR)$(call destination_of,$(1))'

endef
install_files = $(foreach file,$(1),$(call install_file,$(file)))

# PREFIX, and the parts that services share, are filled in.
build/systemd/%: FORCE
	@mkdir -p $(@D)
	$(Q)sed -e '/^@common@$$/{r systemd/service.common' -e 'd}' systemd/$*.in | \
		sed -e '/^@sandbox@$$/{r systemd/service.sandbox' -e 'd}' \
		-e 's|@bindir@|$(PREFIX)/bin|' -e 's|@sbindir@|$(PREFIX)/sbin|' -e 's|@datadir@|$(DATADIR)|' >$@

install: install-daemon install-tools install-python ## install everything below DESTDIR and PREFIX

install-daemon: $(BUILD)/buscapd $(filter %/buscapd.bash %/buscapd.fish %/_buscapd,$(COMPLETIONS)) $(filter %.8 %.5,$(MANUALS)) install-units
	$(call install_files,$(DAEMON_FILES))

# The daemon's service without the daemon. An existing configuration stays as it is.
install-units: $(UNITS) $(DROPINS)
	$(call install_files,$(UNIT_FILES))
	$(Q)install -d '$(DESTDIR)$(CONFDIR)/conf.d' '$(DESTDIR)$(CONFDIR)/boards'
	$(Q)[ -e '$(DESTDIR)$(CONFDIR)/buscapd.conf' ] || \
		install -m 644 systemd/buscapd.conf '$(DESTDIR)$(CONFDIR)/buscapd.conf'

install-tools: $(BUILD)/buscap $(filter %/buscap.bash %/buscap.fish %/_buscap,$(COMPLETIONS)) $(filter %.1,$(MANUALS))
	$(call install_files,$(TOOL_FILES))

install-python: build/systemd/buscap-ship.service
	$(call install_files,$(PYTHON_FILES))

uninstall: ## remove what install installed, except the configuration, recordings, user and group
	$(Q)rm -f $(foreach file,$(UNIT_FILES) $(DAEMON_FILES) $(TOOL_FILES) $(PYTHON_FILES),'$(DESTDIR)$(call destination_of,$(file))')
	$(Q)rm -rf $(foreach folder,$(DATADIR)/buscapd $(addprefix $(DOCDIR)/,buscapd buscap-tools python3-buscap) $(PYTHONDIR)/buscap,\
		'$(DESTDIR)$(folder)')

# A minimal check on the build host: what is recorded equals what was sent.
check-programs: all
	rm -rf $(BUILD)/check-programs
	$(BUILD)/buscapd -c systemd/buscapd.conf --check-config
	$(BUILD)/buscap sim --seed 1 --count 1000000 -O bcp1 -o $(BUILD)/check-programs.bcp1
	$(BUILD)/buscap convert -O byu -o $(BUILD)/check-programs.byu $(BUILD)/check-programs.bcp1
	$(BUILD)/buscapd --once --source sim:seed=1,rate=max,count=1000000 -o $(BUILD)/check-programs
	$(BUILD)/buscap verify $(BUILD)/check-programs/*.byu.lz4
	cat $(BUILD)/check-programs/*.byu.lz4 | lz4 -dc | cmp - $(BUILD)/check-programs.byu

units: ## check units, udev rule, user and directories with systemd's own tools
	$(Q)rm -rf build/units && install -D -m 755 /dev/null build/units/usr/sbin/buscapd
	$(Q)install -D -m 755 /dev/null build/units/usr/bin/buscap-ship
	$(Q)$(MAKE) --no-print-directory install-units install-python DESTDIR=build/units PREFIX=/usr \
		PYTHONDIR=/usr/lib/python3/dist-packages >build/units/install.log
	@tests/tools/units.sh build/units

# The packages are built from a copy of the working tree, uncommitted changes included.
PACKAGE_DIR := build/deb

deb: $(BUILD)/commit ## build the Debian packages into build/deb/
	$(Q)tests/tools/package.sh $(VERSION) $< $(PACKAGE_DIR)

lint-deb: deb ## check the packages with lintian: no errors, no warnings
	$(say) LINT lintian
	$(Q)lintian --allow-root --pedantic --tag-display-limit 0 --fail-on error,warning $(PACKAGE_DIR)/*.changes

test-package: deb ## install, upgrade, remove and purge the packages in a root of SUITE (as root)
	$(Q)PACKAGES=$(PACKAGE_DIR) $(PYTHON) -m pytest -v tests/tools/check_package.py
