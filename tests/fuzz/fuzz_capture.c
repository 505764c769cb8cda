/* Fuzz target: state captures. The first byte selects VCD or csv, the rest of the first line is the
 * description; if it is not valid, there is none. */
#include "tests/fuzz/fuzz_parser.h"

#include "formats/codec/codecs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = {1, 17, 300, SIZE_MAX};
	struct bc_format_options options = bc_format_options_default();
	const uint8_t *newline = size != 0 ? memchr(data, '\n', size) : NULL;
	char layout[512] = "";
	char err[160];

	if (newline == NULL || newline == data || newline + 1 == data + size)
		return 0;
	size_t n = (size_t)(newline - data - 1);
	memcpy(layout, data + 1, n < sizeof(layout) ? n : sizeof(layout) - 1);
	if (bc_vcd_parser.check(layout, err, sizeof(err)))
		options.layout = layout;
	fuzz_parse((data[0] & 4) != 0 ? &bc_csv_capture_parser : &bc_vcd_parser, &options,
		newline + 1, size - n - 2, steps[data[0] & 3], NULL);
	return 0;
}
