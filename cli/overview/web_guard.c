#include "cli/overview/web_guard.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define TOKEN_CHARS (BC_WEB_TOKEN_TEXT - 1)

int bc_web_guard_init(struct bc_web_guard *guard, const union bc_tcp_address *address)
{
	uint8_t random[TOKEN_CHARS / 2];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -errno;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(guard->token + 2 * i, 3, "%02x", random[i]);
	guard->address = *address;
	return 0;
}

/* The time does not depend on where the texts differ. */
static bool is_token(const struct bc_web_guard *guard, const char *text)
{
	unsigned differs = 0;

	if (strlen(text) != TOKEN_CHARS)
		return false;
	for (size_t i = 0; i < TOKEN_CHARS; i++)
		differs |= (unsigned char)text[i] ^ (unsigned char)guard->token[i];
	return differs == 0;
}

/* The page itself, or the user who follows the link: not a page of another site or port. Old
 * browsers and other clients do not say. */
static bool is_same_site(const char *fetch_site)
{
	return fetch_site == NULL || strcmp(fetch_site, "same-origin") == 0 ||
	       strcmp(fetch_site, "none") == 0;
}

static bool is_same_origin(const char *origin, const char *host)
{
	static const char scheme[] = "http://";
	const size_t n = sizeof(scheme) - 1;

	return origin == NULL || (strncmp(origin, scheme, n) == 0 && strcmp(origin + n, host) == 0);
}

bool bc_web_guard_allows(const struct bc_web_guard *guard, const struct bc_web_credentials *c)
{
	if (c->host == NULL || !bc_tcp_address_is_host(&guard->address, c->host) ||
		!is_same_origin(c->origin, c->host) || !is_same_site(c->fetch_site))
		return false;
	return c->token != NULL && is_token(guard, c->token);
}
