/* The table of formats, what is lost between two, and the conversion of entries to what one holds.
 *
 * bc_format_conversion() says from the table alone what a conversion loses; the converter counts
 * what it actually loses. Invariant: it never loses a trait that the table says is kept, except
 * those in lossy_traits. Entries that the target holds as they are pass in runs, without a copy. */
#include "formats/codec/format.h"

#include "formats/codec/codecs.h"

#define BUS_TRAITS                                                                                 \
	(BC_TRAIT_REFERENCE | BC_TRAIT_FETCH | BC_TRAIT_CYCLE | BC_TRAIT_INVALID | BC_TRAIT_SIZE | \
		BC_TRAIT_ATTR | BC_TRAIT_SAMPLE)
#define BYU_TRAITS                                                                               \
	(BC_TRAIT_REFERENCE | BC_TRAIT_FETCH | BC_TRAIT_CYCLE | BC_TRAIT_P6 | BC_TRAIT_INVALID | \
		BC_TRAIT_SIZE | BC_TRAIT_ATTR | BC_TRAIT_PROC | BC_TRAIT_TIME)
#define DINERO_TRAITS (BC_TRAIT_REFERENCE | BC_TRAIT_FETCH | BC_TRAIT_MISC)

/* The parser and the printer of a format. */
#define BOTH_WAYS(codec)                                                     \
	.can_read = true, .can_write = true, .parser = &bc_##codec##_parser, \
	.printer = &bc_##codec##_printer

#define BYU_DIALECT(codec, text)                                                   \
	{                                                                          \
		.summary = (text), BOTH_WAYS(codec), .traits = BYU_TRAITS,         \
		.lossy_traits = BC_TRAIT_TIME, .write_options = BC_OPTION_INVALID, \
	}

static const struct bc_format_info formats[BC_FORMATS] = {
	[BC_FORMAT_UNKNOWN] = {.summary = "unknown"},
	[BC_FORMAT_SEGMENT] =
		{.summary = "buscapd's own files: BYU records in lz4 or zstd, with gaps and times",
			.can_read = true,
			.can_write = true,
			.traits = BYU_TRAITS | BC_TRAIT_EVENT,
			.write_options = BC_OPTION_CLOCK_HZ | BC_OPTION_INVALID |
					 BC_OPTION_COMPRESSION},
	[BC_FORMAT_BCP1] = {.summary = "the stream of a capture board: bus samples in frames",
		.can_read = true,
		.can_write = true,
		.printer = &bc_bcp1_printer,
		.traits = BUS_TRAITS | BC_TRAIT_PROC | BC_TRAIT_TIME | BC_TRAIT_EVENT,
		.lossy_traits = BC_TRAIT_SIZE | BC_TRAIT_ATTR | BC_TRAIT_CYCLE | BC_TRAIT_TIME |
				BC_TRAIT_EVENT,
		.write_options = BC_OPTION_MAP | BC_OPTION_SEED},
	[BC_FORMAT_RAW6] = {.summary = "BYU Pentium bus trace: bus samples of 6 bytes",
		BOTH_WAYS(raw6),
		.traits = BUS_TRAITS,
		.lossy_traits = BC_TRAIT_SIZE | BC_TRAIT_ATTR | BC_TRAIT_CYCLE,
		.write_options = BC_OPTION_MAP | BC_OPTION_SEED},
	[BC_FORMAT_BYU] = BYU_DIALECT(byu, "BYU address trace: records of 12 bytes"),
	[BC_FORMAT_BYU16] = BYU_DIALECT(byu16, "the same in 16 bytes, addresses of 64 bits"),
	[BC_FORMAT_BYU24] = BYU_DIALECT(
		byu24, "the same in 24 bytes, addresses and times of 64 bits"),
	[BC_FORMAT_BYU_BE] = BYU_DIALECT(byu_be, "the 12-byte record with big-endian fields"),
	[BC_FORMAT_LAPLACE] = {.summary = "Laplace's references: records of 18 bytes",
		BOTH_WAYS(laplace),
		.traits = BC_TRAIT_REFERENCE | BC_TRAIT_FETCH | BC_TRAIT_SIZE | BC_TRAIT_TIME |
			  BC_TRAIT_SPACE | BC_TRAIT_LETTER,
		.read_options = BC_OPTION_ENDIAN,
		.write_options = BC_OPTION_ENDIAN},
	[BC_FORMAT_LAPLACE_TEXT] = {.summary = "the same as text, addresses of 64 bits",
		.is_text = true,
		BOTH_WAYS(laplace_text),
		.traits = BC_TRAIT_REFERENCE | BC_TRAIT_FETCH | BC_TRAIT_SIZE | BC_TRAIT_TIME |
			  BC_TRAIT_SPACE | BC_TRAIT_LETTER},
	[BC_FORMAT_LAPLACE_EVENTS] = {.summary = "Laplace's kernel events",
		.is_text = true,
		BOTH_WAYS(laplace_events),
		.traits = BC_TRAIT_KERNEL | BC_TRAIT_TIME | BC_TRAIT_LETTER},
	[BC_FORMAT_CIS501] = {.summary = "micro-ops, 14 columns per line",
		.is_text = true,
		BOTH_WAYS(cis501),
		.traits = BC_TRAIT_UOP,
		.read_options = BC_OPTION_SIZE},
	[BC_FORMAT_TARMAC] =
		{.summary = "Tarmac and ISPRAS Trace Matcher: instructions, accesses, registers",
			.is_text = true,
			BOTH_WAYS(tarmac),
			.traits = BC_TRAIT_INSTRUCTION | BC_TRAIT_REGISTER | BC_TRAIT_LINE |
				  BC_TRAIT_REFERENCE | BC_TRAIT_SIZE | BC_TRAIT_PROC |
				  BC_TRAIT_TIME | BC_TRAIT_DATA | BC_TRAIT_PHYS | BC_TRAIT_ATTRIB |
				  BC_TRAIT_SECURITY,
			.needed_traits = BC_TRAIT_SIZE},
	[BC_FORMAT_DIN] = {.summary = "Dinero: label and address",
		.is_text = true,
		BOTH_WAYS(din),
		.traits = DINERO_TRAITS | BC_TRAIT_FLUSH,
		.read_options = BC_OPTION_SIZE},
	[BC_FORMAT_XDIN] = {.summary = "Dinero, extended: letter, address and size",
		.is_text = true,
		BOTH_WAYS(xdin),
		.traits = DINERO_TRAITS | BC_TRAIT_CACHE | BC_TRAIT_SIZE},
	[BC_FORMAT_LACKEY] = {.summary = "valgrind --tool=lackey --trace-mem=yes",
		.is_text = true,
		.can_read = true,
		.parser = &bc_lackey_parser,
		.printer = &bc_lackey_printer,
		.traits = BC_TRAIT_REFERENCE | BC_TRAIT_FETCH | BC_TRAIT_MODIFY | BC_TRAIT_SIZE},
	[BC_FORMAT_LINES] = {.summary = "one access per line, as described: 'lines:{type} {addr}'",
		.is_text = true,
		.can_read = true,
		.parser = &bc_lines_parser,
		.traits = BC_TRAIT_REFERENCE | (BC_TYPES & ~(bc_traits)BC_TRAIT_INVALID) |
			  BC_TRAIT_SIZE | BC_TRAIT_PROC | BC_TRAIT_TIME | BC_TRAIT_DATA},
	[BC_FORMAT_VCD] =
		{.summary = "value change dump, for GTKWave; for PulseView, vcd:signals=bits",
			.is_text = true,
			BOTH_WAYS(vcd),
			.traits = BYU_TRAITS | BC_TYPES | BC_TRAIT_EVENT,
			.lossy_traits = BC_TRAIT_TIME | BC_TRAIT_REFERENCE,
			.write_options = BC_OPTION_INVALID | BC_OPTION_CLOCK_HZ |
					 BC_OPTION_SIGNALS},
	[BC_FORMAT_PERFETTO] =
		{.summary = "references per millisecond and events, for ui.perfetto.dev",
			.can_write = true,
			.printer = &bc_perfetto_printer,
			.traits = BC_TRAIT_REFERENCE | BC_TYPES | BC_TRAIT_TIME | BC_TRAIT_EVENT,
			.lossy_traits = BC_TRAIT_TIME,
			.write_options = BC_OPTION_INVALID | BC_OPTION_CLOCK_HZ |
					 BC_OPTION_INTERVAL},
	[BC_FORMAT_ROWBINARY] =
		{.summary = "ClickHouse: session, number, absolute time and the BYU fields",
			.can_write = true,
			.printer = &bc_rowbinary_printer,
			.traits = BYU_TRAITS,
			.write_options = BC_OPTION_SESSION | BC_OPTION_INVALID},
	[BC_FORMAT_CSV] = {.summary = "a header row, then one row per entry",
		.is_text = true,
		BOTH_WAYS(csv),
		.traits = BC_TRAITS},
	[BC_FORMAT_NDJSON] = {.summary = "one JSON object per line",
		.is_text = true,
		BOTH_WAYS(ndjson),
		.traits = BC_TRAITS},
	[BC_FORMAT_ARROW] =
		{.summary = "Arrow IPC stream of references, for pyarrow, polars, DuckDB",
			.can_write = true,
			.printer = &bc_arrow_printer,
			.traits = BYU_TRAITS | BC_TYPES,
			.write_options = BC_OPTION_INVALID},
};

const struct bc_format_info *bc_format_info(enum bc_format format)
{
	return &formats[format];
}

const struct bc_parser *bc_format_parser(enum bc_format format, const char *layout)
{
	bool is_capture = format == BC_FORMAT_CSV && layout != NULL && bc_csv_capture_is(layout);

	return is_capture ? &bc_csv_capture_parser : formats[format].parser;
}

bool bc_format_read_options(enum bc_format format, bool is_output,
	struct bc_format_options *options, const char *text, char *err, size_t errlen)
{
	const struct bc_format_info *info = &formats[format];
	const struct bc_parser *parser = bc_format_parser(format, text);

	if (!is_output && parser != NULL && parser->check != NULL) {
		options->layout = text;
		return parser->check(text, err, errlen);
	}
	return text == NULL ||
	       bc_format_options_read(options, text,
		       is_output ? info->write_options : info->read_options, err, errlen);
}

static bool is_byu(enum bc_format format)
{
	return format >= BC_FORMAT_BYU && format <= BC_FORMAT_BYU_BE;
}

#define BECOMES_REFERENCE (BC_TRAIT_REFERENCE | BC_TRAIT_INSTRUCTION | BC_TRAIT_UOP)

enum bc_conversion bc_traits_conversion(bc_traits traits, enum bc_format to, uint32_t *lost)
{
	const uint32_t reported = BC_KINDS & ~(uint32_t)(BC_TRAIT_EVENT | BC_TRAIT_LINE);
	const struct bc_format_info *target = &formats[to];
	bc_traits common = traits & target->traits & reported;

	*lost = traits & ~target->traits;
	/* Invalid cycles come with samples. Other formats have them as records only on request. */
	if ((traits & ~target->traits & BC_TRAIT_SAMPLE) != 0)
		*lost |= traits & BC_TRAIT_INVALID;
	if (!target->can_write)
		return BC_CONVERSION_REFUSED;
	if ((traits & BECOMES_REFERENCE) != 0 && (target->traits & BC_TRAIT_REFERENCE) != 0) {
		*lost |= target->needed_traits;
		/* An instruction or micro-op becomes fetches, which have a size. */
		if ((traits & ~target->traits & (BC_TRAIT_INSTRUCTION | BC_TRAIT_UOP)) != 0)
			*lost |= (BC_TRAIT_SIZE | BC_TRAIT_FETCH) & ~target->traits;
		common |= (traits & target->needed_traits) == target->needed_traits
				  ? BC_TRAIT_REFERENCE
				  : 0;
	}
	if ((common & ~(uint32_t)BC_TRAIT_REFERENCE) == 0 &&
		((common & BC_TRAIT_REFERENCE) == 0 ||
			(traits & target->needed_traits) != target->needed_traits))
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
	return bc_traits_conversion(formats[from].traits, to, lost);
}

bc_traits bc_format_lossy_traits(enum bc_format from, enum bc_format to)
{
	const uint32_t bus = BC_TRAIT_SIZE | BC_TRAIT_ATTR | BC_TRAIT_CYCLE;
	bc_traits source = formats[from].traits;
	bc_traits lose = formats[to].lossy_traits & source;

	if (from == to || (is_byu(from) && is_byu(to)))
		return 0;
	/* A trace without times gets a distinct time for each reference. */
	if ((source & BC_TRAIT_TIME) == 0)
		lose &= ~(uint32_t)BC_TRAIT_REFERENCE;
	/* A sample is written unchanged, and these have nothing else. */
	return from == BC_FORMAT_RAW6 || from == BC_FORMAT_BCP1 ? lose & ~bus : lose;
}

const char *bc_format_refusal(enum bc_format from, enum bc_format to)
{
	bc_traits source = formats[from].traits;

	if (!formats[from].can_read)
		return "the source can only be written";
	if (!formats[to].can_write)
		return "the target can only be read";
	if ((formats[to].traits & BC_TRAIT_REFERENCE) == 0)
		return (formats[to].traits & BC_TRAIT_UOP) != 0
			       ? "the target holds only micro-ops"
			       : "the target holds only kernel events";
	if ((source & BECOMES_REFERENCE) == 0)
		return "the source has no references";
	return "the source has no sizes, which the target needs";
}

/* ---- entry convert */

void bc_entry_converter_init(struct bc_entry_converter *c, enum bc_format target,
	const struct bc_format_options *target_options)
{
	*c = (struct bc_entry_converter){.traits = bc_format_info(target)->traits,
		.needed_traits = bc_format_info(target)->needed_traits,
		.keep_invalid = target_options->keep_invalid};
}

void bc_entry_convert_batch(
	struct bc_entry_converter *c, const struct bc_entry *entries, size_t count)
{
	c->at = entries;
	c->count = count;
}

static void count_loss(
	struct bc_entry_converter *c, uint64_t *counts, const struct bc_entry *entry, uint32_t lost)
{
	if (c->lost == NULL) {
		c->lost = entry;
		c->lost_traits = lost;
	}
	for (; lost != 0; lost &= lost - 1)
		counts[__builtin_ctz(lost)]++;
}

/* Traits of an entry that the target cannot hold. Invalid cycles need samples, or a request. */
static bc_traits missing_traits(const struct bc_entry_converter *c, const struct bc_entry *entry)
{
	bc_traits traits = bc_entry_traits(entry);
	bc_traits held = c->traits;

	if ((traits & BC_TRAIT_INVALID) != 0 && (traits & BC_TRAIT_SAMPLE) != 0 &&
		(held & BC_TRAIT_SAMPLE) == 0 && !c->keep_invalid)
		held &= ~(bc_traits)BC_TRAIT_INVALID;
	return traits & ~held;
}

/* True if the target needs a size and the reference has none. A line that is copied is exempt. */
static bool lacks_size(const struct bc_entry_converter *c, const struct bc_entry *entry)
{
	return c->needed_traits != 0 && entry->kind == BC_ENTRY_REFERENCE && entry->size == 0 &&
	       entry->line.at == NULL;
}

/* Reduces a reference to what the target can hold. Returns the number of references in `out`. */
static size_t reduce_reference(
	struct bc_entry_converter *c, struct bc_entry *out, const struct bc_entry *entry)
{
	uint32_t lost = missing_traits(c, entry);
	uint32_t types = lost & BC_TYPES;
	int plain = bc_ref_type_plain(entry->type);
	size_t n = 1;

	uint32_t why = lost & BC_TRAIT_REFERENCE; /* it is left out */
	/* A type that is only a letter, or one that cannot be reduced. */
	if (why == 0 && entry->type == BC_REF_LETTER)
		why = lost & BC_TRAIT_LETTER;
	if (why == 0 && types != 0 && (plain < 0 || plain == entry->type))
		why = types;
	if (why == 0 && lacks_size(c, entry))
		why = BC_TRAIT_SIZE;
	count_loss(c, why != 0 ? c->left_out : c->trait_losses, entry, why != 0 ? why : lost);
	if (why != 0) {
		c->left_out_types[entry->type] += why != BC_TRAIT_SIZE;
		return 0;
	}
	out[0] = *entry;
	if (types != 0) {
		out[0].type = (uint16_t)plain;
		c->changed_types[entry->type]++;
		if (entry->type == BC_REF_MODIFY) {
			out[1] = out[0];
			out[1].type = BC_REQ_MEMWRITE;
			out[1].is_continued = true;
			n = 2;
		}
	}
	return n;
}

/* Converts an entry that the target cannot hold directly. */
static size_t convert_entry(struct bc_entry_converter *c, const struct bc_entry *entry)
{
	struct bc_entry references[BC_REFERENCES_MAX];
	uint32_t kind = missing_traits(c, entry) & BC_KINDS;
	size_t made = 0;

	if (entry->kind == BC_ENTRY_REFERENCE)
		return reduce_reference(c, c->made, entry);
	size_t n = (c->traits & BC_TRAIT_REFERENCE) != 0 ? bc_entry_references(references, entry)
							 : 0;
	/* A micro-op without a memory access yields no reference, and is not left out. */
	bool is_represented = n != 0 || entry->kind == BC_ENTRY_UOP;
	count_loss(c,
		is_represented && (c->traits & BC_TRAIT_REFERENCE) != 0 ? c->trait_losses
									: c->left_out,
		entry, kind);
	for (size_t i = 0; i < n; i++) {
		if (missing_traits(c, &references[i]) == 0 && !lacks_size(c, &references[i]))
			c->made[made++] = references[i];
		else
			made += reduce_reference(c, c->made + made, &references[i]);
	}
	return made;
}

size_t bc_entry_converter_next(struct bc_entry_converter *c, const struct bc_entry **run)
{
	/* csv and ndjson hold everything: no entry needs to be looked at. */
	if (c->traits == BC_TRAITS && c->needed_traits == 0) {
		size_t n = c->count;
		*run = c->at;
		c->count = 0;
		return n;
	}
	while (c->count != 0) {
		size_t n = 0;
		uint32_t lost = 0;
		/* As many as the target can hold directly, except for some fields. */
		while (n < c->count) {
			lost = missing_traits(c, &c->at[n]);
			if ((lost & ~(uint32_t)BC_FIELDS) != 0 ||
				((lost & BC_TRAIT_LETTER) != 0 && c->at[n].type == BC_REF_LETTER) ||
				lacks_size(c, &c->at[n]))
				break;
			if (lost != 0)
				count_loss(c, c->trait_losses, &c->at[n], lost);
			n++;
		}
		*run = c->at;
		c->at += n;
		c->count -= n;
		if (n != 0)
			return n;
		n = convert_entry(c, c->at);
		c->at++;
		c->count--;
		*run = c->made;
		if (n != 0)
			return n;
	}
	return 0;
}
