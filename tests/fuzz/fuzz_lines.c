/* Fuzz target: layouts and lines that they describe. The first line is the layout. */
#include "formats/codec/lines.h"
#include "tests/fuzz/fuzz_parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct bc_parser *parser = bc_format_info(BC_FORMAT_LINES)->parser;
	struct bc_format_options options = bc_format_options_default();
	const uint8_t *newline = memchr(data, '\n', size);
	char err[200];

	if (newline == NULL)
		return 0;
	char *layout = strndup((const char *)data, (size_t)(newline - data));
	FUZZ_CHECK(layout != NULL);
	options.layout = layout;
	size_t rest = size - (size_t)(newline - data) - 1;
	if (parser->check(layout, err, sizeof(err)))
		fuzz_parse(parser, &options, newline + 1, rest, 1, NULL);
	else
		FUZZ_CHECK(err[0] != '\0');
	free(layout);
	return 0;
}
