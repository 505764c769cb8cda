/* Addresses to listen on. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/tcp_address.h"
#include "tests/support/test.h"

static union bc_tcp_address address_of(const char *text)
{
	union bc_tcp_address address;

	assert_true(bc_tcp_address_parse(&address, text));
	return address;
}

static const struct {
	const char *text;
	bool is_good;
	bool is_loopback;
} addresses[] = {
	{"127.0.0.1:0", true, true},
	{"127.255.0.9:65535", true, true},
	{"localhost:1", true, true},
	{"[::1]:0", true, true},
	{"0.0.0.0:80", true, false},
	{"[::]:80", true, false},
	{"128.0.0.1:80", true, false},
	{"[2001:db8::1]:80", true, false},
	{"[::ffff:127.0.0.1]:80", true, false},
	{"", false, false},
	{":", false, false},
	{":80", false, false},
	{"80", false, false},
	{"127.0.0.1", false, false},
	{"127.0.0.1:", false, false},
	{"127.0.0.1:65536", false, false},
	{"127.0.0.1:-1", false, false},
	{"127.0.0.1:+1", false, false},
	{"127.0.0.1:1x", false, false},
	{"127.1:80", false, false},
	{"::1:80", false, false},
	{"[::1]", false, false},
	{"[::1", false, false},
	{"[127.0.0.1]:80", false, false},
	{"example.org:80", false, false},
};

TEST_CASES(addresses_are_numeric_with_a_port, addresses)
{
	union bc_tcp_address address;

	assert_int_equal(bc_tcp_address_parse(&address, c->text), c->is_good);
	if (c->is_good)
		assert_int_equal(bc_tcp_address_is_loopback(&address), c->is_loopback);
}

TEST(a_free_port_is_found_and_written)
{
	static const char *const texts[][2] = {{"127.0.0.1:0", "127.0.0.1:%u"},
		{"0.0.0.0:0", "127.0.0.1:%u"}, {"[::1]:0", "[::1]:%u"}, {"[::]:0", "[::1]:%u"}};

	for (unsigned i = 0; i < COUNT_OF(texts); i++) {
		union bc_tcp_address address = address_of(texts[i][0]);
		char text[BC_TCP_ADDRESS_TEXT];
		char wanted[BC_TCP_ADDRESS_TEXT];
		int fd = bc_tcp_address_listen(&address);
		if (fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT)
			continue; /* no IPv6 */
		assert_true(fd >= 0);
		assert_int_not_equal(bc_tcp_address_port(&address), 0);
		bc_tcp_address_write(text, &address);
		snprintf(wanted, sizeof(wanted), "%.*s%u", (int)(strlen(texts[i][1]) - 2),
			texts[i][1], bc_tcp_address_port(&address));
		assert_string_equal(text, wanted);
		union bc_tcp_address again = address;
		assert_int_equal(bc_tcp_address_listen(&again), -EADDRINUSE);
		close(fd);
	}
}
