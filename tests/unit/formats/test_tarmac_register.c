#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "formats/codec/tarmac_register.h"
#include "tests/support/test.h"

static int write_of(struct bc_register_write *out, const char *name, const char *value)
{
	struct bc_register reg = {.name = {.at = name, .bytes = (uint32_t)strlen(name)},
		.value = {.at = value, .bytes = (uint32_t)strlen(value)}};

	return bc_tarmac_register(out, &reg);
}

TEST(a_register_write_has_a_name_an_offset_and_bytes)
{
	static const struct {
		const char *name;
		const char *value;
		const char *expected; /* name, offset and bytes */
	} writes[] = {
		{"r0", "0000ab34", "r0 0 0000ab34"},
		{"R15", "0000ab34", "r15 0 0000ab34"},
		{"r14_svc", "00008004", "r14 0 00008004"},
		{"lr", "00008004", "r14 0 00008004"},
		{"LR_abt", "00008004", "r14 0 00008004"},
		{"r13_main_s", "30040000", "r13 0 30040000"},
		{"MSP_S", "30040000", "r13 0 30040000"},
		{"X30", "0000000000008004", "x30 0 0000000000008004"},
		{"X0", "01234567 89abcdef", "x0 0 0123456789abcdef"},
		{"E15", "0000007f99d14b94", "x15 0 0000007f99d14b94"},
		{"SP", "01234567", "r13 0 01234567"},
		{"SP", "0123456789abcdef", "xsp 0 0123456789abcdef"},
		{"SP_EL3", "0000000010000000", "xsp 0 0000000010000000"},
		{"sp", "12", "sp 0 12"},
		{"cpsr", "000001f3", "psr 0 000001f3"},
		{"cpsr", "1220023cd", "psr 0 220023cd"},
		{"cpsr", "3cd", "psr 0 000003cd"},
		{"psr", "xx0xxXxx", "psr 0 00000000"},
		{"fpscr", "xXX00fXx", "fpscr 0 00000f00"},
		{"FPCR", "01230123:23452345", "fpcr 0 23452345"},
		{"FPCR", "76543210", "fpcr 0 76543210"},
		{"d8", "0123456789abcdef", "d8 0 0123456789abcdef"},
		{"s31", "3f800000", "s31 0 3f800000"},
		{"q0", "93c467e37db0c7a4_d1be3f810152cb56",
			"q0 0 93c467e37db0c7a4d1be3f810152cb56"},
		{"Q0", "-------- -------- 3ff6a09e 667f3bcd", "q0 0 3ff6a09e667f3bcd"},
		{"Q0", "3ff428a2 f98d728b -------- --------", "q0 8 3ff428a2f98d728b"},
		{"Q0", "-------- f98d728b -------- --------", "q0 8 f98d728b"},
		{"V0<127:64>", "ffeeddccbbaa9988", "v0 8 ffeeddccbbaa9988"},
		{"V0<63:0>", "7766554433221100", "v0 0 7766554433221100"},
		{"V5<127:64>", "00000000", "v5 8 0000000000000000"},
		{"X0", "-------- --------", "x0 0 "},
		{"X1", "--------", "x1 0 "},
		{"X1", "0000", "x1 0 0000000000000000"},
		{"Z3", "00000003_00000002_00000001_00000000",
			"z3 0 00000003000000020000000100000000"},
		{"P31", "3210", "p31 0 3210"},
		{"SCTLR_S", "00c50878", "sctlr_s 0 00c50878"},
		{"r16", "00c50878", "r16 0 00c50878"},
		{"SP_EL0", "-------- 00000001", "xsp 0 00000001"},
		{"thing", "123", "thing 0 0123"},
	};
	struct bc_register_write w;
	char means[128];

	for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
		assert_int_equal(write_of(&w, writes[i].name, writes[i].value), 0);
		int n = snprintf(means, sizeof(means), "%s %u ", w.name, w.offset);
		for (unsigned k = 0; k < w.bytes; k++)
			n += snprintf(means + n, sizeof(means) - (size_t)n, "%02x", w.value[k]);
		assert_string_equal(means, writes[i].expected);
	}
}

TEST(an_invalid_value_is_refused)
{
	struct bc_register_write w;
	char wide[2 * BC_REGISTER_BYTES + 3];

	assert_int_equal(write_of(&w, "r0", ""), -EINVAL);
	assert_int_equal(write_of(&w, "r0", "__"), -EINVAL);
	assert_int_equal(write_of(&w, "r0", "0g"), -EINVAL);
	assert_int_equal(write_of(&w, "", "00"), -EINVAL);
	assert_int_equal(write_of(&w, "a_name_of_more_than_31_characters", "00"), -EINVAL);
	assert_int_equal(write_of(&w, "q0", "00000000 -------- 00000000 --------"), -EINVAL);
	assert_int_equal(write_of(&w, "q0", "-0000000"), -EINVAL);
	assert_int_equal(write_of(&w, "v0<64:0>", "00000000"), -EINVAL);
	assert_int_equal(write_of(&w, "v0<63:4>", "00000000"), -EINVAL);
	assert_int_equal(write_of(&w, "v0<0:63>", "00000000"), -EINVAL);
	assert_int_equal(write_of(&w, "v0<99999999999:0>", "00000000"), -EINVAL);
	assert_int_equal(write_of(&w, "v0<63", "00000000"), -EINVAL);
	memset(wide, '1', sizeof(wide));
	wide[sizeof(wide) - 1] = '\0';
	assert_int_equal(write_of(&w, "z0", wide), -EINVAL);
	wide[2 * BC_REGISTER_BYTES] = '\0';
	assert_int_equal(write_of(&w, "z0", wide), 0);
	assert_int_equal(w.bytes, BC_REGISTER_BYTES);
}
