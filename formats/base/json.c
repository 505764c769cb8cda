/* What jansson lacks: values from any bytes, objects from a table, and parsing and printing that
 * survive running out of memory.
 *
 * jansson 2.14 (Debian 12 and 13) ignores failed allocations in its scanner and then reads beyond
 * its buffer, and drops the names of members when printing fails. So its allocator never fails
 * while it parses, and texts are printed by a callback that remembers a failure. Both can go when
 * the oldest Debian has a jansson that checks. */
#include "formats/base/json.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/grow.h"
#include "formats/base/text.h"
#include "formats/base/utf8.h"

/* Doubles represent all integers up to this one exactly. */
#define DOUBLE_EXACT_MAX (UINT64_C(1) << 53)

json_t *bc_json_text(const char *text)
{
	if (text == NULL)
		return json_null();
	json_t *string = json_string(text);
	if (string != NULL)
		return string;
	char *repaired = bc_utf8_repair(text);
	string = repaired != NULL ? json_string(repaired) : NULL;
	free(repaired);
	return string;
}

json_t *bc_json_text_or_null(const char *text)
{
	return text[0] != '\0' ? bc_json_text(text) : json_null();
}

json_t *bc_json_time(int64_t ns)
{
	char text[BC_RFC3339_BYTES];

	bc_rfc3339_write(text, ns);
	return json_string(text);
}

json_t *bc_json_time_seconds(int64_t ns)
{
	char text[BC_RFC3339_BYTES];

	bc_rfc3339_write_seconds(text, ns);
	return json_string(text);
}

json_t *bc_json_u64(uint64_t value)
{
	char digits[24];

	if (value <= INT64_MAX)
		return json_integer((json_int_t)value);
	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	return json_string(digits);
}

json_t *bc_json_u64_or_null(bool is_known, uint64_t value)
{
	return is_known ? bc_json_u64(value) : json_null();
}

json_t *bc_json_double(double value)
{
	if (!isfinite(value))
		return json_null();
	if (fabs(value) <= (double)DOUBLE_EXACT_MAX && !(fabs(value) > floor(fabs(value))))
		return json_integer((json_int_t)value);
	return json_real(value);
}

json_t *bc_json_object(const struct bc_json_member *members)
{
	json_t *object = json_object();
	bool ok = true;

	for (; members->name != NULL; members++)
		ok = json_object_set_new(object, members->name, members->value) == 0 && ok;
	if (ok)
		return object;
	json_decref(object);
	return NULL;
}

json_t *bc_json_append(json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) == 0)
		return array;
	json_decref(array);
	return NULL;
}

json_t *bc_json_merge(json_t *object, json_t *more)
{
	if (json_object_update_new(object, more) == 0)
		return object;
	json_decref(object);
	return NULL;
}

/* ---- parsing
 *
 * While jansson parses, no allocation fails: when memory has run out, blocks come from a reserve,
 * the parser gets no more text, and the result is discarded. */

/* Bytes of text that the parser gets at a time. */
#define PIECE_BYTES 1024u

/* For the longest token, twice, and the values in a piece. Untouched memory costs nothing. */
#define RESERVE_BYTES (1u << 20)

static struct {
	pthread_mutex_t lock; /* held by the thread that uses it, until its parser ends */
	size_t used;
	_Alignas(16) uint8_t bytes[RESERVE_BYTES];
} reserve = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local bool is_parsing;
static _Thread_local bool has_failed; /* in this parser; the thread has the reserve */

static void *json_alloc(size_t bytes)
{
	void *block = malloc(bytes);

	if (block != NULL || !is_parsing)
		return block;
	if (!has_failed) {
		pthread_mutex_lock(&reserve.lock);
		reserve.used = 0;
		has_failed = true;
	}
	if (bytes > RESERVE_BYTES - reserve.used)
		return NULL;
	block = reserve.bytes + reserve.used;
	reserve.used += (bytes + 15) / 16 * 16;
	return block;
}

static void json_release(void *block)
{
	uintptr_t offset = (uintptr_t)block - (uintptr_t)reserve.bytes;

	if (offset >= RESERVE_BYTES)
		free(block);
}

__attribute__((constructor)) static void set_alloc_funcs(void)
{
	json_set_alloc_funcs(json_alloc, json_release);
}

struct unparsed {
	const char *text;
	size_t bytes;
};

static size_t next_piece(void *out, size_t size, void *context)
{
	struct unparsed *rest = context;
	size_t bytes = rest->bytes < size ? rest->bytes : size;

	if (has_failed)
		return (size_t)-1;
	bytes = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
	memcpy(out, rest->text, bytes);
	rest->text += bytes;
	rest->bytes -= bytes;
	return bytes;
}

json_t *bc_json_parse(const char *text, size_t bytes, size_t flags, json_error_t *error)
{
	struct unparsed rest = {text, bytes};

	is_parsing = true;
	json_t *json = json_load_callback(next_piece, &rest, flags, error);
	is_parsing = false;
	errno = has_failed ? ENOMEM : EINVAL;
	if (!has_failed)
		return json;
	json_decref(json);
	has_failed = false;
	pthread_mutex_unlock(&reserve.lock);
	if (error != NULL)
		snprintf(error->text, sizeof(error->text) - 1, "out of memory");
	return NULL;
}

/* The text printed so far. */
struct printed {
	char *text;
	size_t bytes;
	size_t capacity;
	bool has_failed;
};

static int append_printed(const char *piece, size_t bytes, void *context)
{
	struct printed *p = context;

	char *text = bc_grow(p->text, &p->capacity, p->bytes + bytes, 1);

	p->has_failed = p->has_failed || text == NULL;
	if (text == NULL)
		return -1;
	p->text = text;
	memcpy(p->text + p->bytes, piece, bytes);
	p->bytes += bytes;
	return 0;
}

/* Not with json_dumps(), which would leave out a member's name when memory runs out. */
static char *print_compact(const json_t *json, const char *end, size_t digits)
{
	struct printed p = {.text = NULL};
	size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits);

	if (json != NULL && json_dump_callback(json, append_printed, &p, flags) == 0 &&
		append_printed(end, strlen(end) + 1, &p) == 0 && !p.has_failed)
		return p.text;
	free(p.text);
	return NULL;
}

static char *print_json(const json_t *json, const char *end, size_t digits)
{
	char *text = print_compact(json, end, digits);

	/* jansson writes \u001B. Segment headers have always had \u001b. */
	for (char *p = text; p != NULL && (p = strchr(p, '\\')) != NULL; p += 2)
		if (p[1] == 'u')
			for (int i = 4; i < 6; i++)
				p[i] = (char)tolower((unsigned char)p[i]);
	return text;
}

char *bc_json_print(const json_t *json)
{
	/* With 17 digits, 0.1 would be printed as 0.10000000000000001. */
	return print_json(json, "", 15);
}

char *bc_json_print_line(const json_t *json)
{
	return print_json(json, "\n", 15);
}

char *bc_json_print_exact(const json_t *json)
{
	char *text = bc_json_print(json);
	json_t *read = text != NULL ? bc_json_parse(text, strlen(text), JSON_DECODE_ANY, NULL)
				    : NULL;
	bool is_exact = json_equal(read, json) != 0;

	json_decref(read);
	if (text == NULL || is_exact)
		return text;
	free(text);
	return print_json(json, "", 17);
}

json_t *bc_json_path(const json_t *object, const char *path)
{
	json_t *item = NULL;

	for (; *path != '\0'; object = item) {
		size_t n = strcspn(path, ".");
		item = json_object_getn(object, path, n);
		path += n + (path[n] == '.');
	}
	return item;
}

void bc_json_member_text(const json_t *object, const char *name, char *out, size_t outlen)
{
	const char *text = json_string_value(json_object_get(object, name));

	snprintf(out, outlen, "%s", text != NULL ? text : "");
}

bool bc_json_member_is(const json_t *object, const char *name, const char *text)
{
	const char *value = json_string_value(json_object_get(object, name));

	return value != NULL && strcmp(value, text) == 0;
}

uint64_t bc_json_member_u64(const json_t *object, const char *name)
{
	const json_t *item = json_object_get(object, name);

	if (json_is_integer(item))
		return json_integer_value(item) > 0 ? (uint64_t)json_integer_value(item) : 0;
	double value = json_real_value(item);
	if (value >= (double)DOUBLE_EXACT_MAX)
		return DOUBLE_EXACT_MAX;
	return value > 0 ? (uint64_t)value : 0;
}
