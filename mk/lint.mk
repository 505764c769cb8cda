# Checks of the sources, and generated documents.

.PHONY: lint layers format docs

FORMATTED := $(wildcard $(addsuffix /*.[ch],$(LAYERS) $(LAYERS:=/*) tests/* tests/unit/*))

lint: ## clang-format, clang-tidy, cppcheck and gcc -fanalyzer
	@$(call deps,,$(LINT_TOOLS))
	$(say) LINT clang-format
	$(Q)clang-format --dry-run -Werror $(FORMATTED)
	$(say) LINT clang-tidy
	$(Q)$(MAKE) --no-print-directory $(SOURCES:%=tidy/%)
	$(say) LINT cppcheck
	$(Q)cppcheck --quiet -j $(CORES) --std=c11 --language=c --enable=warning,performance,portability \
		--inline-suppr --error-exitcode=1 --suppress=missingIncludeSystem -D_GNU_SOURCE -I. $(SOURCES)
	$(say) LINT 'gcc -fanalyzer'
	$(Q)$(MAKE) --no-print-directory $(SOURCES:%=analyze/%)

# clang's analyzer spends most of its time on the last paths of long functions: a third of its limit halves that.
tidy/%:
	$(Q)clang-tidy --quiet $(addprefix --extra-arg=,-Xclang -analyzer-config -Xclang max-nodes=75000) $* -- $(filter-out -fsanitize% -fno-sanitize%,$(BC_CFLAGS)) 2>/dev/null

analyze/%:
	$(Q)$(CC) $(BC_CFLAGS) -O1 -fanalyzer -Werror -c -o /dev/null $*

layers: ## check the includes against the table of rooms in docs/architecture.md
	@$(PYTHON) tests/tools/layers.py

format: ## reformat the sources
	$(Q)clang-format -i $(FORMATTED)

docs: $(BUILD)/buscapd ## write the tables of settings in docs/ from the program
	@$(PYTHON) tests/tools/settings.py $<
