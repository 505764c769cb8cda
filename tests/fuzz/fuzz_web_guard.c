/* Fuzz target: what buscap web reads of a request. The lines of the input are the address to listen
 * on, and the headers and the token of a request; an empty line is no header. */
#include <stdlib.h>
#include <string.h>

#include "cli/web/web_server.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns the next line, or NULL if it is empty. */
static const char *next_line(char **at)
{
	char *line = strsep(at, "\n");

	return line != NULL && line[0] != '\0' ? line : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bc_web_guard guard = {.token = TOKEN};
	char *text = strndup((const char *)data, size);
	char *at = text;

	if (text == NULL)
		abort();
	const char *address = next_line(&at);
	if (address != NULL && bc_tcp_address_parse(&guard.address, address)) {
		const struct bc_web_credentials credentials = {
			.host = next_line(&at),
			.origin = next_line(&at),
			.fetch_site = next_line(&at),
			.fetch_dest = next_line(&at),
			.token = next_line(&at),
		};
		char written[BC_TCP_ADDRESS_TEXT];
		bc_tcp_address_write(written, &guard.address);
		if (!bc_tcp_address_is_host(&guard.address, written))
			abort();
		bool has_token = credentials.token != NULL && strcmp(credentials.token, TOKEN) == 0;
		bool is_allowed = bc_web_guard_allows(&guard, &credentials);
		if (is_allowed && (!has_token || credentials.host == NULL))
			abort();
		if (is_allowed && credentials.origin != NULL &&
			strcmp(credentials.origin + strlen("http://"), credentials.host) != 0)
			abort();
	}
	free(text);
	return 0;
}
