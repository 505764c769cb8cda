/* Which requests buscap web serves. */
#include <stdio.h>
#include <string.h>

#include "cli/web/web_server.h"
#include "tests/support/test.h"

struct fixture {
	struct bc_web_guard guard;
	struct bc_web_credentials good;
};

static union bc_tcp_address address_of(const char *text)
{
	union bc_tcp_address address;

	assert_true(bc_tcp_address_parse(&address, text));
	return address;
}

static void set_up(struct fixture *f)
{
	union bc_tcp_address address = address_of("127.0.0.1:8080");

	assert_int_equal(bc_web_guard_init(&f->guard, &address), 0);
	f->good = (struct bc_web_credentials){.host = "127.0.0.1:8080", .token = f->guard.token};
}

TEST_FIXTURE(fixture, set_up, NOTHING)

static bool allows(const struct fixture *f, struct bc_web_credentials credentials)
{
	return bc_web_guard_allows(&f->guard, &credentials);
}

TEST_F(each_token_is_new)
{
	struct bc_web_guard other;

	assert_int_equal(bc_web_guard_init(&other, &f->guard.address), 0);
	assert_int_equal(strlen(other.token), 32);
	assert_int_equal(strspn(other.token, "0123456789abcdef"), 32);
	assert_string_not_equal(other.token, f->guard.token);
}

TEST_F(the_token_is_enough_and_required)
{
	assert_true(allows(f, f->good));
	f->good.token = NULL;
	assert_false(allows(f, f->good));
}

/* Every wrong character at every place, every length, and more. */
TEST_F(any_other_token_is_refused)
{
	struct bc_web_credentials c = f->good;
	char token[80];

	for (size_t bytes = 0; bytes <= 2 * strlen(f->guard.token); bytes++) {
		size_t whole = strlen(f->guard.token);
		snprintf(token, sizeof(token), "%s%s", f->guard.token, f->guard.token);
		token[bytes] = '\0';
		c.token = token;
		assert_int_equal(allows(f, c), bytes == whole);
	}
	for (size_t i = 0; i < strlen(f->guard.token); i++) {
		for (unsigned byte = 1; byte < 256; byte++) {
			snprintf(token, sizeof(token), "%s", f->guard.token);
			token[i] = (char)byte;
			c.token = token;
			assert_int_equal(allows(f, c), (char)byte == f->guard.token[i]);
		}
	}
}

static const struct {
	const char *origin;
	bool is_good;
} origins[] = {
	{NULL, true},
	{"http://127.0.0.1:8080", true},
	{"http://127.0.0.1:8080/", false},
	{"https://127.0.0.1:8080", false},
	{"HTTP://127.0.0.1:8080", false},
	{"http://localhost:8080", false},
	{"http://127.0.0.1", false},
	{"http://127.0.0.1:80", false},
	{"http://127.0.0.1:80800", false},
	{"http://evil.example", false},
	{"http://127.0.0.1:8080.evil.example", false},
	{"http://evil.example/http://127.0.0.1:8080", false},
	{"null", false},
	{"", false},
	{"127.0.0.1:8080", false},
};

TEST_CASES(only_the_own_origin_is_allowed, origins)
{
	struct fixture f;

	set_up(&f);
	f.good.origin = c->origin;
	assert_int_equal(allows(&f, f.good), c->is_good);
}

static const struct {
	const char *site;
	bool is_good;
} sites[] = {
	{NULL, true},
	{"same-origin", true},
	{"none", true},
	{"same-site", false},
	{"cross-site", false},
	{"", false},
	{"same-origin, none", false},
	{"Same-Origin", false},
	{"anything", false},
};

TEST_CASES(pages_of_other_sites_are_refused, sites)
{
	struct fixture f;

	set_up(&f);
	f.good.fetch_site = c->site;
	assert_int_equal(allows(&f, f.good), c->is_good);
}

static const struct {
	const char *dest;
	bool is_good;
} destinations[] = {
	{"document", true},
	{"iframe", false},
	{"script", false},
	{"empty", false},
	{"", false},
};

TEST_CASES(a_link_on_another_site_opens_the_page_in_a_tab_only, destinations)
{
	struct fixture f;

	set_up(&f);
	f.good.fetch_site = "cross-site";
	f.good.fetch_dest = c->dest;
	assert_int_equal(allows(&f, f.good), c->is_good);
	f.good.token = NULL;
	assert_false(allows(&f, f.good));
}

static const struct {
	const char *listen;
	const char *host;
	bool is_good;
} hosts[] = {
	{"127.0.0.1:8080", "127.0.0.1:8080", true},
	{"127.0.0.1:8080", "localhost:8080", true},
	{"127.0.0.1:8080", "LocalHost:8080", true},
	{"127.0.0.1:8080", "127.0.0.1", false},
	{"127.0.0.1:8080", "127.0.0.1:", false},
	{"127.0.0.1:8080", "127.0.0.1:80", false},
	{"127.0.0.1:8080", "127.0.0.1:08080", false},
	{"127.0.0.1:8080", "127.0.0.1:8080 ", false},
	{"127.0.0.1:8080", " 127.0.0.1:8080", false},
	{"127.0.0.1:8080", "127.0.0.1:8080:8080", false},
	{"127.0.0.1:8080", "127.0.0.1.:8080", false},
	{"127.0.0.1:8080", "127.1:8080", false},
	{"127.0.0.1:8080", "0x7f.0.0.1:8080", false},
	{"127.0.0.1:8080", "2130706433:8080", false},
	{"127.0.0.1:8080", "127.0.0.2:8080", false},
	{"127.0.0.1:8080", "[127.0.0.1]:8080", false},
	{"127.0.0.1:8080", "[::1]:8080", false},
	{"127.0.0.1:8080", "[::ffff:127.0.0.1]:8080", false},
	{"127.0.0.1:8080", "localhost.:8080", false},
	{"127.0.0.1:8080", "localhost", false},
	{"127.0.0.1:8080", "localhost.localdomain:8080", false},
	{"127.0.0.1:8080", "x.localhost:8080", false},
	{"127.0.0.1:8080", "127.0.0.1.nip.io:8080", false},
	{"127.0.0.1:8080", "evil.example:8080", false},
	{"127.0.0.1:8080", "user@127.0.0.1:8080", false},
	{"127.0.0.1:8080", "evil.example", false},
	{"127.0.0.1:8080", "", false},
	{"127.0.0.1:8080", ":", false},
	{"127.0.0.1:8080", ":8080", false},
	{"127.0.0.1:8080", "]", false},
	{"127.0.0.1:8080", "[", false},
	{"127.0.0.1:8080", "[]:8080", false},
	{"127.0.0.1:80", "127.0.0.1", true},
	{"127.0.0.1:80", "127.0.0.1:80", true},
	{"127.0.0.1:80", "localhost", true},
	{"127.0.0.1:80", "localhost:", false},
	{"127.0.0.2:8080", "127.0.0.2:8080", true},
	{"127.0.0.2:8080", "127.0.0.1:8080", false},
	{"localhost:8080", "127.0.0.1:8080", true},
	{"[::1]:8080", "[::1]:8080", true},
	{"[::1]:8080", "[0:0:0:0:0:0:0:1]:8080", true},
	{"[::1]:8080", "localhost:8080", true},
	{"[::1]:8080", "::1:8080", false},
	{"[::1]:8080", "[::1]", false},
	{"[::1]:8080", "[::1]8080", false},
	{"[::1]:8080", "[::1%25lo]:8080", false},
	{"[::1]:8080", "[::2]:8080", false},
	{"[::1]:8080", "127.0.0.1:8080", false},
	{"[::1]:80", "[::1]", true},
	{"[::1]:80", "::1", false},
	{"192.0.2.7:8080", "192.0.2.7:8080", true},
	{"192.0.2.7:8080", "localhost:8080", false},
	{"192.0.2.7:8080", "192.0.2.8:8080", false},
	{"0.0.0.0:8080", "192.0.2.7:8080", true},
	{"0.0.0.0:8080", "localhost:8080", true},
	{"0.0.0.0:8080", "evil.example:8080", false},
	{"0.0.0.0:8080", "[::1]:8080", false},
	{"[::]:8080", "[2001:db8::7]:8080", true},
	{"[::]:8080", "localhost:8080", true},
	{"[::]:8080", "127.0.0.1:8080", false},
	{"[::]:8080", "evil.example:8080", false},
};

TEST_CASES(only_the_host_that_is_listened_on_is_served, hosts)
{
	struct bc_web_guard guard;
	union bc_tcp_address address = address_of(c->listen);

	assert_int_equal(bc_web_guard_init(&guard, &address), 0);
	const struct bc_web_credentials credentials = {.host = c->host, .token = guard.token};
	assert_int_equal(bc_web_guard_allows(&guard, &credentials), c->is_good);
}

TEST_F(a_host_is_required_and_may_be_of_any_length)
{
	struct bc_web_credentials c = f->good;
	char host[4096];

	c.host = NULL;
	assert_false(allows(f, c));
	c.host = host;
	for (size_t n = 0; n < sizeof(host) - 8; n++) {
		memset(host, '1', n);
		strcpy(host + n, ":8080");
		assert_false(allows(f, c));
		memset(host, '[', n);
		assert_false(allows(f, c));
	}
}
