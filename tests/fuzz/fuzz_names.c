/* Fuzz target: names of segments and recordings. A name that is accepted is written as it was
 * read, and the order of names is total. Two names, separated by a newline. */
#include <stdlib.h>
#include <string.h>

#include "formats/segment/segment_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_name(struct bc_segment_name *name, const char *file)
{
	char out[BC_SEGMENT_NAME_MAX];
	struct bc_segment_name again;

	if (!bc_segment_name_read(name, file))
		return false;
	bc_segment_name_write(out, name);
	if (strcmp(out, file) != 0 || strchr(name->recording, '/') != NULL ||
		!bc_segment_name_read(&again, out) || bc_segment_name_compare(name, &again) != 0)
		abort();
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bc_segment_name a;
	struct bc_segment_name b;
	char *text = strndup((const char *)data, size);

	if (text == NULL)
		abort();
	char *other = strchr(text, '\n');
	if (other != NULL)
		*other++ = '\0';
	bool has_a = read_name(&a, text);
	if (other != NULL && read_name(&b, other) && has_a) {
		int order = bc_segment_name_compare(&a, &b);
		int reverse = bc_segment_name_compare(&b, &a);
		if ((order < 0) != (reverse > 0) || (order == 0) != (reverse == 0))
			abort();
	}
	free(text);
	return 0;
}
