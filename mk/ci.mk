# What every change must pass (`make ci`), and everything (`make nightly`).
#
# `make ci` is one graph of steps, so that all cores are busy; a failed step does not stop the others. A step writes
# build/ci/STEP.log and, if it passes, the stamp build/ci/STEP: it is not repeated until a file of the tree changes.

.PHONY: ci nightly nightly-sanitize nightly-sweeps nightly-torture nightly-release

CI_DIR := build/ci
ASAN   := SAN=address,undefined
TSAN   := SAN=thread
# Steps to leave out.
SKIP   ?=
# The commit since when sources have changed: see changed.sh.
SINCE  ?=

# $(call ci_step,NAME,STEPS BEFORE,COMMAND)
define ci_rule
CI_STEPS += $(CI_DIR)/$(1)
$(CI_DIR)/$(1): $(CI_TREE) | $(patsubst %,$(CI_DIR)/%,$(filter-out $(SKIP),$(2)))
	@tests/tools/ci_step.sh $$@ $(3)
endef
ci_step = $(if $(filter $(SKIP),$(1)),,$(eval $(call ci_rule,$(1),$(2),$(3))))

ifneq ($(filter ci $(CI_DIR)/%,$(MAKECMDGOALS)),)
$(if $(ONLY)$(SAN),$(error make ci: it runs all tests in all builds; ONLY and SAN are for make check))
CI_TREE := $(wildcard $(shell git ls-files))
endif

# First what fails within seconds, then what others wait for.
$(call ci_step,layers,,$$(MAKE) layers)
$(call ci_step,format,,$$(MAKE) lint-format)
$(call ci_step,cppcheck,,$$(MAKE) lint-cppcheck)
$(call ci_step,build,,$$(MAKE) all tests torture-programs)
$(call ci_step,fresh,build,tests/tools/fresh.sh --short bookworm)
$(call ci_step,lint-changed,build,$$(MAKE) lint-changed SINCE=$(SINCE))
$(call ci_step,test,build,$$(MAKE) LEVEL=ci check)
$(call ci_step,asan-build,build,$$(MAKE) $(ASAN) all tests)
$(call ci_step,fuzzers,asan-build,$$(MAKE) $(ASAN) fuzzers)
$(call ci_step,tsan-build,build,$$(MAKE) $(TSAN) all tests)
$(call ci_step,instructions,build,$$(MAKE) bench-instructions)
$(call ci_step,valgrind,build,$$(MAKE) valgrind)
# The tests with sanitizers leave the machine its time: its services have watchdogs.
$(call ci_step,asan,asan-build,nice -n 5 $$(MAKE) $(ASAN) LEVEL=ci check)
$(call ci_step,torture,build,$$(MAKE) torture)
$(call ci_step,fuzz,fuzzers,$$(MAKE) fuzz)
$(call ci_step,tsan,tsan-build,nice -n 5 $$(MAKE) $(TSAN) LEVEL=ci check)
$(call ci_step,deb,build,$$(MAKE) lint-deb)
$(call ci_step,units,test,$$(MAKE) units)
$(call ci_step,machine,deb,tests/tools/changed.sh --machine $(SINCE) $$(MAKE) -o deb test-package test-machine)
$(call ci_step,fleet,build,tests/tools/changed.sh --fleet $(SINCE) env BUILD=$(BUILD) PYTHONPATH=tests/support $(PYTHON) tests/fleet/check.py --short)

ci: ## all that a change must pass
	@rm -f $(CI_DIR)/*.log
	@$(MAKE) --no-print-directory -k $(CI_STEPS) || { tests/tools/ci_step.sh --failed $(CI_DIR); exit 1; }

# $(call each,ARGUMENTS,ARGUMENTS,...) makes all of these, one after the other, even if one fails.
each = @failed=0; $(foreach n,1 2 3 4,$(if $($(n)),$(MAKE) $($(n)) || failed=1;)) exit $$failed

# Each part takes less than an hour on two cores.
nightly: ## everything, in four parts: nightly-sanitize, nightly-sweeps, nightly-torture, nightly-release
	$(call each,nightly-sanitize,nightly-sweeps,nightly-torture,nightly-release)

nightly-sanitize: ## all tests under both sanitizers
	$(call each,$(ASAN) LEVEL=nightly check,$(TSAN) LEVEL=nightly check)

nightly-sweeps: ## all tests with every case of their sweeps; lint of all sources
	$(call each,LEVEL=nightly check,lint)

nightly-torture: ## the torture programs in their long forms, and a minute of each fuzz target
	$(call each,torture LONG=1 TORTURE_FLAGS='--seconds 180',fuzz FUZZ_SECONDS=60)

nightly-release: ## both Debian releases from clone to packages, the packages, the machine, the catalogue
	$(call each,check-fresh,lint-deb test-package,-o deb test-machine RUNS=3,check-fleet)
