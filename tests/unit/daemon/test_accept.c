/* Which types an Accept header accepts. */
#include "daemon/http/accept.h"
#include "tests/support/test.h"

static const struct accepted {
	const char *name; /* the header */
	unsigned quality; /* of text/plain; version=0.0.4 */
	bool is_named;
} headers[] = {
	{"", 0, false},
	{"text/plain", 1000, true},
	{"TEXT/Plain", 1000, true},
	{"text/plain;q=0", 0, true},
	{"text/plain;q=0.0", 0, true},
	{"text/plain ; Q = 0.25 ", 250, true},
	{"text/plain;q=\"0.25\"", 250, true},
	{"text/plain;q=1.000", 1000, true},
	{"text/plain;q=0.001", 1, true},
	{"text/plain;q=", 0, false},
	{"text/plain;q=2", 0, false},
	{"text/plain;q=1.5", 0, false},
	{"text/plain;q=0.0000", 0, false},
	{"text/plain;q=x, */*;q=0.5", 500, false},
	{"text/html", 0, false},
	{"text/plainer", 0, false},
	{"text/*", 1000, false},
	{"*/*;q=0.5", 500, false},
	{"*/*, text/*;q=0.5", 500, false},
	{"text/*, text/plain;q=0", 0, true},
	{"text/plain;q=0, */*", 0, true},
	{"text/plain;q=0.2, text/plain;q=0.4", 400, true},
	{"text/plain;version=0.0.4", 1000, true},
	{"text/plain;version=\"0.0.4\";q=0.5", 500, true},
	{"text/plain;version=0.0.4;q=0, text/plain", 0, true},
	{"text/plain;version=1, */*;q=0.1", 100, false},
	{"text/plain;charset=utf-8;q=0.1", 100, true},
	{"a/b;c=\", text/plain\"", 0, false},
	{"a/b;c=\"\\\", text/plain\", text/plain;q=0.7", 700, true},
	{",, ;, ;=;, text/plain;;", 1000, true},
	{"text/plain;\"", 1000, true},
	{"text", 0, false},
};

TEST_CASES(the_most_specific_range_counts, headers)
{
	struct bc_acceptance found = bc_accept_find(c->name, "text/plain", "0.0.4");

	assert_int_equal(found.quality, c->quality);
	assert_int_equal(found.is_named, c->is_named);
}

TEST(without_a_header_every_type_is_accepted)
{
	struct bc_acceptance found = bc_accept_find(NULL, "text/plain", "0.0.4");

	assert_int_equal(found.quality, 1000);
	assert_false(found.is_named);
}
