#include "formats/codec/format.h"

#include "formats/base/format_id.h"
#include "formats/codec/codecs.h"
#include "formats/trace/entry.h"

#define BUS_HOLDS                                                                        \
	(BC_CAN_REFERENCE | BC_CAN_FETCH | BC_CAN_CYCLE | BC_CAN_INVALID | BC_HAS_SIZE | \
		BC_HAS_ATTR | BC_HAS_SAMPLE)
#define BYU_HOLDS                                                                      \
	(BC_CAN_REFERENCE | BC_CAN_FETCH | BC_CAN_CYCLE | BC_CAN_P6 | BC_CAN_INVALID | \
		BC_HAS_SIZE | BC_HAS_ATTR | BC_HAS_PROC | BC_HAS_TIME)
#define DINERO_HOLDS (BC_CAN_REFERENCE | BC_CAN_FETCH | BC_CAN_MISC)

/* The parser and the printer of a format. */
#define BOTH_WAYS(codec)                                                     \
	.can_read = true, .can_write = true, .parser = &bc_##codec##_parser, \
	.printer = &bc_##codec##_printer

#define BYU_DIALECT(codec, text)                                                                  \
	{                                                                                         \
		.summary = (text), BOTH_WAYS(codec), .holds = BYU_HOLDS, .may_lose = BC_HAS_TIME, \
		.write_options = BC_OPTION_INVALID,                                               \
	}

static const struct bc_format_info formats[BC_FORMATS] = {
	[BC_FORMAT_UNKNOWN] = {.summary = "unknown"},
	[BC_FORMAT_SEGMENT] =
		{.summary = "buscapd's own files: BYU records in lz4, with gaps and times",
			.can_read = true,
			.can_write = true,
			.holds = BYU_HOLDS | BC_CAN_EVENT,
			.write_options = BC_OPTION_CLOCK_HZ | BC_OPTION_INVALID},
	[BC_FORMAT_BCP1] = {.summary = "the stream of a capture board: bus samples in frames",
		.can_read = true,
		.can_write = true,
		.printer = &bc_bcp1_printer,
		.holds = BUS_HOLDS | BC_HAS_PROC | BC_HAS_TIME | BC_CAN_EVENT,
		.may_lose = BC_HAS_SIZE | BC_HAS_ATTR | BC_CAN_CYCLE | BC_HAS_TIME | BC_CAN_EVENT,
		.write_options = BC_OPTION_MAP | BC_OPTION_SEED},
	[BC_FORMAT_RAW6] = {.summary = "BYU Pentium bus trace: bus samples of 6 bytes",
		BOTH_WAYS(raw6),
		.holds = BUS_HOLDS,
		.may_lose = BC_HAS_SIZE | BC_HAS_ATTR | BC_CAN_CYCLE,
		.write_options = BC_OPTION_MAP | BC_OPTION_SEED},
	[BC_FORMAT_BYU] = BYU_DIALECT(byu, "BYU address trace: records of 12 bytes"),
	[BC_FORMAT_BYU16] = BYU_DIALECT(byu16, "the same in 16 bytes, addresses of 64 bits"),
	[BC_FORMAT_BYU24] = BYU_DIALECT(
		byu24, "the same in 24 bytes, addresses and times of 64 bits"),
	[BC_FORMAT_BYU_BE] = BYU_DIALECT(byu_be, "the 12-byte record with big-endian fields"),
	[BC_FORMAT_LAPLACE] = {.summary = "Laplace's references: records of 18 bytes",
		BOTH_WAYS(laplace),
		.holds = BC_CAN_REFERENCE | BC_CAN_FETCH | BC_HAS_SIZE | BC_HAS_TIME |
			 BC_HAS_SPACE | BC_HAS_LETTER,
		.read_options = BC_OPTION_ENDIAN,
		.write_options = BC_OPTION_ENDIAN},
	[BC_FORMAT_LAPLACE_TEXT] = {.summary = "the same as text, addresses of 64 bits",
		.is_text = true,
		BOTH_WAYS(laplace_text),
		.holds = BC_CAN_REFERENCE | BC_CAN_FETCH | BC_HAS_SIZE | BC_HAS_TIME |
			 BC_HAS_SPACE | BC_HAS_LETTER},
	[BC_FORMAT_LAPLACE_EVENTS] = {.summary = "Laplace's kernel events",
		.is_text = true,
		BOTH_WAYS(laplace_events),
		.holds = BC_CAN_KERNEL | BC_HAS_TIME | BC_HAS_LETTER},
	[BC_FORMAT_CIS501] = {.summary = "micro-ops, 14 columns per line",
		.is_text = true,
		BOTH_WAYS(cis501),
		.holds = BC_CAN_UOP,
		.read_options = BC_OPTION_SIZE},
	[BC_FORMAT_TARMAC] =
		{.summary = "Tarmac and ISPRAS Trace Matcher: instructions, accesses, registers",
			.is_text = true,
			BOTH_WAYS(tarmac),
			.holds = BC_CAN_INSTRUCTION | BC_CAN_REGISTER | BC_CAN_LINE |
				 BC_CAN_REFERENCE | BC_HAS_SIZE | BC_HAS_PROC | BC_HAS_TIME |
				 BC_HAS_DATA | BC_HAS_PHYS | BC_HAS_ATTRIB | BC_HAS_SECURITY,
			.needs = BC_HAS_SIZE},
	[BC_FORMAT_DIN] = {.summary = "Dinero: label and address",
		.is_text = true,
		BOTH_WAYS(din),
		.holds = DINERO_HOLDS | BC_CAN_FLUSH,
		.read_options = BC_OPTION_SIZE},
	[BC_FORMAT_XDIN] = {.summary = "Dinero, extended: letter, address and size",
		.is_text = true,
		BOTH_WAYS(xdin),
		.holds = DINERO_HOLDS | BC_CAN_CACHE | BC_HAS_SIZE},
	[BC_FORMAT_LACKEY] = {.summary = "valgrind --tool=lackey --trace-mem=yes",
		.is_text = true,
		.can_read = true,
		.parser = &bc_lackey_parser,
		.printer = &bc_lackey_printer,
		.holds = BC_CAN_REFERENCE | BC_CAN_FETCH | BC_CAN_MODIFY | BC_HAS_SIZE},
	[BC_FORMAT_VCD] = {.summary = "value change dump, for GTKWave and PulseView",
		.is_text = true,
		.can_write = true,
		.printer = &bc_vcd_printer,
		.holds = BYU_HOLDS | BC_TYPES,
		.may_lose = BC_HAS_TIME | BC_CAN_REFERENCE,
		.write_options = BC_OPTION_INVALID | BC_OPTION_CLOCK_HZ | BC_OPTION_SIGNALS},
	[BC_FORMAT_ROWBINARY] =
		{.summary = "ClickHouse: session, number, absolute time and the BYU fields",
			.can_write = true,
			.printer = &bc_rowbinary_printer,
			.holds = BYU_HOLDS,
			.write_options = BC_OPTION_SESSION | BC_OPTION_INVALID},
	[BC_FORMAT_CSV] = {.summary = "a header row, then one row per entry",
		.is_text = true,
		.can_write = true,
		.printer = &bc_csv_printer,
		.holds = BC_FIELDS | BC_TYPES | BC_KINDS},
	[BC_FORMAT_NDJSON] = {.summary = "one JSON object per line",
		.is_text = true,
		.can_write = true,
		.printer = &bc_ndjson_printer,
		.holds = BC_FIELDS | BC_TYPES | BC_KINDS},
};

const struct bc_format_info *bc_format_info(enum bc_format format)
{
	return &formats[format];
}

static bool is_byu(enum bc_format format)
{
	return format >= BC_FORMAT_BYU && format <= BC_FORMAT_BYU_BE;
}

#define BECOMES_REFERENCE (BC_CAN_REFERENCE | BC_CAN_INSTRUCTION | BC_CAN_UOP)

enum bc_conversion bc_traits_conversion(uint32_t holds, enum bc_format to, uint32_t *lost)
{
	const uint32_t reported = BC_KINDS & ~(uint32_t)(BC_CAN_EVENT | BC_CAN_LINE);
	const struct bc_format_info *target = &formats[to];
	uint32_t common = holds & target->holds & reported;

	*lost = holds & ~target->holds;
	/* Invalid cycles come with samples. Other formats contain them as records only on
	 * request. */
	if ((holds & ~target->holds & BC_HAS_SAMPLE) != 0)
		*lost |= holds & BC_CAN_INVALID;
	if (!target->can_write)
		return BC_CONVERSION_REFUSED;
	if ((holds & BECOMES_REFERENCE) != 0 && (target->holds & BC_CAN_REFERENCE) != 0) {
		*lost |= target->needs;
		/* An instruction or micro-op becomes fetches, which have a size. */
		if ((holds & ~target->holds & (BC_CAN_INSTRUCTION | BC_CAN_UOP)) != 0)
			*lost |= (BC_HAS_SIZE | BC_CAN_FETCH) & ~target->holds;
		common |= (holds & target->needs) == target->needs ? BC_CAN_REFERENCE : 0;
	}
	if ((common & ~(uint32_t)BC_CAN_REFERENCE) == 0 &&
		((common & BC_CAN_REFERENCE) == 0 || (holds & target->needs) != target->needs))
		return BC_CONVERSION_REFUSED;
	return *lost == 0 ? BC_CONVERSION_LOSSLESS : BC_CONVERSION_LOSSY;
}

enum bc_conversion bc_format_conversion(enum bc_format from, enum bc_format to, uint32_t *lost)
{
	if (!formats[from].can_read)
		return BC_CONVERSION_REFUSED;
	/* A format's own lines are copied, regardless of the fields they lack. */
	if (from == to && formats[to].can_write) {
		*lost = 0;
		return BC_CONVERSION_LOSSLESS;
	}
	return bc_traits_conversion(formats[from].holds, to, lost);
}

uint32_t bc_format_may_lose(enum bc_format from, enum bc_format to)
{
	const uint32_t bus = BC_HAS_SIZE | BC_HAS_ATTR | BC_CAN_CYCLE;
	uint32_t source = formats[from].holds;
	uint32_t lose = formats[to].may_lose & source;

	if (from == to || (is_byu(from) && is_byu(to)))
		return 0;
	/* A trace without times gets a distinct time for each reference. */
	if ((source & BC_HAS_TIME) == 0)
		lose &= ~(uint32_t)BC_CAN_REFERENCE;
	/* A sample is written unchanged. */
	return (source & BC_HAS_SAMPLE) != 0 ? lose & ~bus : lose;
}

const char *bc_format_refusal(enum bc_format from, enum bc_format to)
{
	uint32_t source = formats[from].holds;

	if (!formats[from].can_read)
		return "it can only be written";
	if (!formats[to].can_write)
		return "it can only be read";
	if ((formats[to].holds & BC_CAN_REFERENCE) == 0)
		return (formats[to].holds & BC_CAN_UOP) != 0 ? "it holds only micro-ops"
							     : "it holds only kernel events";
	if ((source & BECOMES_REFERENCE) == 0)
		return "it has no references";
	return "it has no sizes, which the target requires";
}
