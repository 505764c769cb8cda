# Checks of the sources, and generated documents.

.PHONY: lint lint-format lint-cppcheck lint-changed layers format docs

FORMATTED := $(wildcard $(addsuffix /*.[ch],$(LAYERS) $(LAYERS:=/*) tests/* tests/unit/*))
lint_all   = $(1:%=tidy/%) $(1:%=analyze/%)

lint: lint-format lint-cppcheck ## clang-format, cppcheck, clang-tidy and gcc -fanalyzer; lint-changed for what has changed
	$(Q)$(MAKE) --no-print-directory $(call lint_all,$(SOURCES))

lint-changed: # SINCE=COMMIT
	@sources=$$(tests/tools/changed.sh $(SINCE)) && \
		$(MAKE) --no-print-directory layers lint-format $$(for one in $$sources; do echo tidy/$$one analyze/$$one; done)

lint-format:
	$(say) LINT clang-format
	$(Q)clang-format --dry-run -Werror $(FORMATTED)

lint-cppcheck:
	$(say) LINT cppcheck
	$(Q)cppcheck --quiet -j $(CORES) --std=c11 --language=c --enable=warning,performance,portability \
		--inline-suppr --error-exitcode=1 --suppress=missingIncludeSystem -D_GNU_SOURCE -I. $(SOURCES)

# clang's analyzer spends most of its time on the last paths of long functions: a third of its limit halves that.
tidy/%:
	$(say) TIDY $*
	$(Q)clang-tidy --quiet $(addprefix --extra-arg=,-Xclang -analyzer-config -Xclang max-nodes=75000) $* -- $(filter-out -fsanitize% -fno-sanitize%,$(BC_CFLAGS)) 2>/dev/null

# GCC 12 loses sight of what an array of pointers holds when the array moves.
$(addprefix analyze/,cli/io/operands.c cli/overview/overview_files.c daemon/store/catalogue.c \
		formats/recording/recording_list.c formats/trace/name_map.c): \
	BC_CFLAGS += -Wno-analyzer-malloc-leak

analyze/%:
	$(say) ANALYZE $*
	$(Q)$(CC) $(BC_CFLAGS) -O1 -fanalyzer -Werror -c -o /dev/null $*

layers: ## check the includes against the table of rooms in docs/architecture.md
	@command -v $(PYTHON) >/dev/null || { echo '$(PYTHON) is missing: run "make deps"' >&2; exit 1; }
	@$(PYTHON) tests/tools/layers.py

format: ## reformat the sources
	$(Q)clang-format -i $(FORMATTED)

docs: $(BUILD)/buscapd ## write the tables of settings and figures in docs/
	@$(PYTHON) -B docs/tables.py $<
