/* JSON as RFC 8259 has it. cJSON takes more: control characters and broken UTF-8 in texts, numbers
 * with leading zeros, and it ends a text at its first U+0000. */
#ifndef BC_DAEMON_API_JSON_H
#define BC_DAEMON_API_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the characters, texts and numbers of `text` are those of JSON; how they stand together is
 * cJSON's to say. Else returns false with a sentence in *why, which is constant text, and where in
 * *at. */
bool bc_api_json_is_strict(const char *text, size_t bytes, const char **why, size_t *at);

#endif
