#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/diff/compare.h"
#include "formats/trace/entry.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define ALL ((UINT64_C(1) << BC_FIELD_COUNT) - 1)

/* Texts of which some are equivalent in some fields. */
static const char *const texts[] = {"", "x0", "X0", "00_ff", "FF", "0:0ff", "MOV  a,b", "MOV\ta,b ",
	"mov a,b", "0", "\x1b[31m", "\xff\xfe"};

static struct bc_text roll_text(struct dice *dice)
{
	const char *text = texts[dice_below(dice, COUNT_OF(texts))];

	return (struct bc_text){.at = text, .bytes = (uint32_t)strlen(text)};
}

static void roll_entry(struct bc_entry *e, struct dice *dice)
{
	memset(e, 0, sizeof(*e));
	bc_entry_reference(e, dice_below(dice, 2), dice_below(dice, 2), 0);
	e->kind = (uint8_t)dice_below(dice, BC_ENTRY_KINDS);
	e->traits = dice_below(dice, 4) != 0 ? BC_FIELDS : dice_below(dice, BC_FIELDS + 1);
	e->size = dice_below(dice, 2);
	e->attr = (uint8_t)dice_below(dice, 2);
	e->proc = (uint16_t)dice_below(dice, 2);
	e->letter = dice_below(dice, 2) != 0 ? 'r' : 'w';
	e->data = dice_below(dice, 2);
	e->phys = dice_below(dice, 2);
	e->space = dice_below(dice, 2);
	e->sample[4] = (uint8_t)dice_below(dice, 2);
	if (e->kind != BC_ENTRY_REFERENCE)
		e->traits &= ~(uint32_t)(BC_TRAIT_ATTRIB | BC_TRAIT_SECURITY);
	switch (e->kind) {
	case BC_ENTRY_REFERENCE:
		e->access.attrib = roll_text(dice);
		e->access.security = roll_text(dice);
		break;
	case BC_ENTRY_INSTRUCTION:
		e->instruction.effect = (uint8_t)dice_below(dice, 3);
		e->instruction.digits = (uint8_t)dice_below(dice, 2) * 8;
		e->instruction.opcode = dice_below(dice, 2);
		e->instruction.set = roll_text(dice);
		e->instruction.mode = roll_text(dice);
		e->instruction.disassembly = roll_text(dice);
		break;
	case BC_ENTRY_UOP:
		e->uop.step = (int32_t)dice_below(dice, 2);
		e->uop.dest = (int32_t)dice_below(dice, 2) - 1;
		e->uop.flags = e->uop.branch = e->uop.access = dice_below(dice, 2) ? '-' : 'L';
		e->uop.target = dice_below(dice, 2);
		e->uop.macro = roll_text(dice);
		e->uop.micro = roll_text(dice);
		break;
	case BC_ENTRY_REGISTER:
		e->reg.name = roll_text(dice);
		e->reg.value = roll_text(dice);
		break;
	case BC_ENTRY_KERNEL:
		e->kernel.tag = roll_text(dice);
		e->kernel.rest = roll_text(dice);
		break;
	case BC_ENTRY_EVENT:
		e->note.event.kind = (uint8_t)dice_below(dice, 5);
		e->note.event.value = dice_below(dice, 2);
		e->note.text = roll_text(dice);
		break;
	case BC_ENTRY_LINE:
		e->line = roll_text(dice);
		break;
	default:
		break;
	}
}

TEST(equal_entries_have_the_same_hash)
{
	struct dice dice = {.state = 99};
	unsigned same = 0;

	for (unsigned i = 0; i < 300000; i++) {
		struct bc_entry a;
		struct bc_entry b;
		/* Only a few fields, so that many entries are equal. */
		uint64_t fields = (dice_roll(&dice) & dice_roll(&dice) & dice_roll(&dice) & ALL) |
				  BC_FIELD_KIND;
		roll_entry(&a, &dice);
		roll_entry(&b, &dice);
		uint64_t differ = bc_compare_entries(&a, &b, fields);
		assert_int_equal(differ & ~fields, 0);
		assert_int_equal(differ & BC_FIELD_TIME, 0);
		assert_int_equal(differ, bc_compare_entries(&b, &a, fields));
		assert_int_equal(bc_compare_entries(&a, &a, ALL), 0);
		assert_int_equal(
			differ == 0, bc_compare_hash(&a, fields) == bc_compare_hash(&b, fields));
		same += differ == 0;
	}
	assert_true(same > 1000);
}

TEST(descriptions_are_short_and_printable)
{
	struct dice dice = {.state = 7};
	static char long_text[4000];

	memset(long_text, 'y', sizeof(long_text));
	for (unsigned i = 0; i < 50000; i++) {
		struct bc_entry e;
		char *out = malloc(BC_ENTRY_TEXT_MAX);
		roll_entry(&e, &dice);
		e.type = (uint16_t)dice_roll(&dice);
		e.unit = (uint8_t)dice_roll(&dice);
		e.tick = dice_roll(&dice);
		if (e.kind == BC_ENTRY_LINE)
			e.line = (struct bc_text){
				.at = long_text, .bytes = dice_below(&dice, sizeof(long_text))};
		size_t n = bc_entry_text(out, &e);
		assert_true(n < BC_ENTRY_TEXT_MAX && strlen(out) == n);
		for (size_t k = 0; k < n; k++)
			assert_true(out[k] >= ' ' && out[k] <= '~');
		if (e.kind == BC_ENTRY_LINE && e.line.bytes > BC_ENTRY_TEXT_MAX)
			assert_string_equal(out + n - 3, "...");
		free(out);
	}
}
