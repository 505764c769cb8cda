# What every change must pass (`make ci`), and everything (`make nightly`).
#
# `make ci` is one graph of steps, so that all cores are busy; a failed step does not stop the others. A step writes
# build/ci/STEP.log and, if it passes, the stamp build/ci/STEP: it is not repeated until a file of the tree changes.

.PHONY: ci nightly nightly-sanitize nightly-sweeps nightly-torture nightly-release

CI   := build/ci
ASAN := SAN=address,undefined
TSAN := SAN=thread
# Since when the sources have changed: see changed.sh.
SINCE ?=

# $(call ci_step,NAME,STEPS BEFORE,COMMAND)
define ci_step
CI_STEPS += $(CI)/$(1)
$(CI)/$(1): $(CI_TREE) | $(2:%=$(CI)/%)
	@tests/tools/ci_step.sh $$@ $(3)
endef
ifneq ($(filter ci $(CI)/%,$(MAKECMDGOALS)),)
CI_TREE := $(wildcard $(shell git ls-files))
endif
step = $(eval $(call ci_step,$(1),$(2),$(3)))

# In this order: first what fails within seconds, then what others wait for.
$(call step,layers,,$$(MAKE) layers)
$(call step,format,,$$(MAKE) lint-format)
$(call step,cppcheck,,$$(MAKE) lint-cppcheck)
$(call step,build,,$$(MAKE) all tests torture-programs)
$(call step,changed,build,$$(MAKE) lint-changed SINCE=$(SINCE))
$(call step,test,build,$$(MAKE) LEVEL=ci check)
$(call step,asan-build,build,$$(MAKE) $(ASAN) all tests)
$(call step,fuzzers,asan-build,$$(MAKE) $(ASAN) fuzzers)
$(call step,tsan-build,build,$$(MAKE) $(TSAN) all tests)
$(call step,instructions,build,$$(MAKE) bench-instructions)
$(call step,valgrind,build,$$(MAKE) valgrind)
$(call step,asan,asan-build,$$(MAKE) $(ASAN) LEVEL=ci MARKS=asan check)
$(call step,torture,build,$$(MAKE) torture)
$(call step,fuzz,fuzzers,$$(MAKE) fuzz)
$(call step,tsan,tsan-build,$$(MAKE) $(TSAN) LEVEL=ci MARKS=tsan check)
$(call step,deb,build,$$(MAKE) lint-deb)
$(call step,units,build,$$(MAKE) units)
$(call step,machine,deb,tests/tools/changed.sh --machine $(SINCE) $$(MAKE) -o deb test-package test-machine)

ci: deps-ci ## all that a change must pass
	@$(MAKE) --no-print-directory -k $(CI_STEPS) || { tests/tools/ci_step.sh --failed $(CI); exit 1; }

# Parts that can run on their own, each within an hour on two cores.
nightly: ## everything, in four parts: nightly-sanitize, nightly-sweeps, nightly-torture, nightly-release
	@$(MAKE) --no-print-directory -k -j1 nightly-sanitize nightly-sweeps nightly-torture nightly-release

# $(call each,ARGUMENTS,ARGUMENTS,...) makes all of these, even if one fails.
each = @failed=0; $(foreach n,1 2 3 4,$(if $($(n)),$(MAKE) $($(n)) || failed=1;)) exit $$failed

nightly-sanitize: deps-ci ## all tests under both sanitizers
	$(call each,$(ASAN) LEVEL=nightly check,$(TSAN) LEVEL=nightly check)

nightly-sweeps: deps-ci ## all tests with every case of their sweeps; lint of all sources
	$(call each,LEVEL=nightly check,lint)

nightly-torture: deps-ci ## the torture programs in their long forms, and a minute of each fuzz target
	$(call each,torture LONG=1 TORTURE_FLAGS='--seconds 180',fuzz FUZZ_SECONDS=60)

nightly-release: deps-ci ## both Debian releases from clone to packages, the packages, the machine, clickhouse
	$(call each,check-fresh,lint-deb test-package,-o deb test-machine RUNS=3,check-clickhouse)
