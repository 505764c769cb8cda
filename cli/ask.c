#include "cli/ask.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum bc_exit bc_ask_open(
	struct bc_client **client, const struct bc_console *console, const char *socket)
{
	if (bc_client_open(client, socket) == 0)
		return BC_EXIT_OK;
	return bc_complain_memory(console);
}

enum bc_exit bc_ask(const struct bc_console *console, const char *socket, const char *method,
	const char *path, cJSON *body, long timeout_ms, struct bc_answer *answer)
{
	struct bc_client *client;
	enum bc_exit code = bc_ask_open(&client, console, socket);

	*answer = (struct bc_answer){0};
	if (code == BC_EXIT_OK) {
		if (timeout_ms != 0)
			bc_client_set_timeout(client, timeout_ms);
		code = bc_client_call(client, method, path, body, answer);
		if (code != BC_EXIT_OK)
			bc_client_complain(client, console, code);
	}
	bc_client_close(client);
	cJSON_Delete(body);
	return code;
}

enum bc_exit bc_ask_print_json(const struct bc_console *console, const struct bc_answer *answer)
{
	struct bc_output output;
	size_t bytes = answer->bytes;

	if (bytes == 0)
		return BC_EXIT_OK;
	if (!bc_output_open(&output, console))
		return BC_EXIT_FAILED;
	while (bytes != 0 && answer->text[bytes - 1] == '\n')
		bytes--;
	bc_output_json(&output, answer->text, bytes);
	return bc_output_close(&output, console);
}

enum bc_exit bc_ask_complain_answer(const struct bc_console *console)
{
	bc_complain(console, NULL,
		"the daemon's answer lacks what it should have; is it a buscapd of "
		"version " BC_VERSION "?");
	return BC_EXIT_FAILED;
}

char *bc_ask_encode(const char *text)
{
	static const char digits[] = "0123456789ABCDEF";
	char *encoded = malloc(strlen(text) * 3 + 1);
	char *p = encoded;

	if (encoded == NULL)
		return NULL;
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;
		if (c < 0x80 && (isalnum(c) || strchr("-._~", c) != NULL)) {
			*p++ = (char)c;
			continue;
		}
		*p++ = '%';
		*p++ = digits[c >> 4];
		*p++ = digits[c & 15];
	}
	*p = '\0';
	return encoded;
}
