# Programs that attack the recorder: tests/reliability/README.md. Each tests/reliability/NAME.py is a program, except
# torture.py, which they share; each tests/reliability/NAME.c is linked like a unit test, for the program that runs it.

TORTURES         := $(filter-out torture,$(patsubst tests/reliability/%.py,%,$(wildcard tests/reliability/*.py)))
TORTURE_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/reliability/*.c))

.PHONY: torture torture-programs $(TORTURES:%=torture-%)

$(BUILD)/tests/reliability/%.o: BC_CFLAGS += $(test_cflags)
$(BUILD)/tests/reliability/%: $(BUILD)/tests/reliability/%.o $(BUILD)/libsupport.a $(BUILD)/libboard.a \
		$(BUILD)/libcli.a $(LIB_DAEMON)
	$(call link,$(TEST_PKGS))

# In turn, because each uses all cores; all run even if one fails.
torture-programs: $(TORTURE_PROGRAMS)

torture: all $(HELPERS) $(TORTURE_PROGRAMS) ## attack the recorder, short forms; torture-NAME for one, LONG=1 long
	@failed=; for name in $(TORTURES); do \
		BUILD=$(BUILD) LONG=$(LONG) $(PYTHON) tests/reliability/$$name.py $(TORTURE_FLAGS) || failed="$$failed $$name"; \
	done; [ -z "$$failed" ] || { echo "torture: failed:$$failed"; exit 1; }

$(TORTURES:%=torture-%): torture-%: all $(HELPERS) $(TORTURE_PROGRAMS)
	@BUILD=$(BUILD) LONG=$(LONG) ROUNDS=$(ROUNDS) SEED=$(SEED) $(PYTHON) tests/reliability/$*.py $(TORTURE_FLAGS)
