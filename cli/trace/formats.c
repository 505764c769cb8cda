/* buscap formats, which lists what can be read and written, and what each conversion loses. */
#include "cli/term/commands.h"

#include "cli/term/options.h"
#include "cli/term/output.h"
#include "formats/base/format_id.h"
#include "formats/base/json.h"
#include "formats/codec/format.h"
#include "formats/codec/layout.h"
#include "formats/trace/entry.h"

static const struct bc_usage_option formats_options[] = {
	{'j', "json", NULL, NULL, "print one JSON object per format, each on a line"},
	{'m', "matrix", NULL, NULL, "print a table of conversions and their losses, in Markdown"},
	{0},
};

const struct bc_usage bc_formats_usage = {
	.name = "formats",
	.operands = "[LAYOUT]",
	.kind = "text",
	.summary = "list the trace formats, or print a layout",
	.text = "Lists the formats that can be read (r) and written (w), with the options that can "
		"follow their names, such as laplace:endian=big. The last ones are layouts of "
		"lines; with the name of one, prints it, to be copied and changed: "
		"-I 'lines:LAYOUT' reads any trace with one access per line.",
	.options = formats_options,
	.exits = "0 ok, 2 wrong usage.",
	.example = "buscap formats pin",
};

static void list_options(struct bc_output *output, const char *word, unsigned keys)
{
	if (keys == 0)
		return;
	bc_output_format(output, "%18s%s:", "", word);
	for (; keys != 0; keys &= keys - 1)
		bc_output_format(output, " %s=", bc_option_key_name(keys & (0 - keys)));
	bc_output_text(output, "\n", 1);
}

static bool is_format_too(const struct bc_named_layout *row)
{
	return bc_format_by_name(row->name) != BC_FORMAT_UNKNOWN;
}

static void print_list(struct bc_output *output)
{
	for (unsigned f = 1; f < BC_FORMATS; f++) {
		const struct bc_format_info *info = bc_format_info((enum bc_format)f);
		bc_output_format(output, "%c%c %-14s %s\n", info->can_read ? 'r' : '-',
			info->can_write ? 'w' : '-', bc_format_name((enum bc_format)f),
			info->summary);
		list_options(output, "options to read", info->read_options);
		list_options(output, "options to write", info->write_options);
	}
	bc_output_format(output, "\nLayouts of lines, which `buscap formats NAME` prints:\n");
	for (const struct bc_named_layout *row = bc_named_layouts; row->name != NULL; row++)
		if (!is_format_too(row))
			bc_output_format(output, "   %-14s %s\n", row->name, row->summary);
}

static json_t *options_json(unsigned keys)
{
	json_t *names = json_array();

	for (; keys != 0; keys &= keys - 1)
		names = bc_json_append(names, json_string(bc_option_key_name(keys & (0 - keys))));
	return names;
}

static void print_json_list(struct bc_output *output)
{
	for (unsigned f = 1; f < BC_FORMATS; f++) {
		const struct bc_format_info *info = bc_format_info((enum bc_format)f);
		bc_output_json_value(output,
			BC_JSON_OBJECT({"name", json_string(bc_format_name((enum bc_format)f))},
				{"summary", json_string(info->summary)},
				{"can_read", json_boolean(info->can_read)},
				{"can_write", json_boolean(info->can_write)},
				{"read_options", options_json(info->read_options)},
				{"write_options", options_json(info->write_options)}));
	}
	for (const struct bc_named_layout *row = bc_named_layouts; row->name != NULL; row++)
		if (!is_format_too(row))
			bc_output_json_value(output,
				BC_JSON_OBJECT({"name", json_string(row->name)},
					{"summary", json_string(row->summary)},
					{"can_read", json_true()}, {"can_write", json_false()},
					{"read_options", json_array()},
					{"write_options", json_array()},
					{"layout", json_string(row->layout)}));
}

_Static_assert(BC_TRAIT_BITS <= 26, "a letter for each trait");

static void print_letters(struct bc_output *output, bc_traits traits)
{
	for (; traits != 0; traits &= traits - 1)
		bc_output_format(output, "%c", 'a' + __builtin_ctz(traits));
}

/* Prints a cell: a letter for each trait that is always lost, then in parentheses those that single
 * entries may lose. The letters are explained below the table. Returns all of these traits. */
static uint32_t print_cell(struct bc_output *output, enum bc_format from, enum bc_format to)
{
	uint32_t lost;
	enum bc_conversion conversion = bc_format_conversion(from, to, &lost);
	bc_traits lossy = bc_format_lossy_traits(from, to);

	if (conversion == BC_CONVERSION_REFUSED) {
		bc_output_format(output, " - |");
		return 0;
	}
	bc_output_format(output, conversion == BC_CONVERSION_LOSSLESS ? " =" : " ");
	print_letters(output, lost);
	if (lossy != 0) {
		bc_output_format(output, " (");
		print_letters(output, lossy);
		bc_output_format(output, ")");
	}
	bc_output_format(output, " |");
	return lost | lossy;
}

static void print_matrix(struct bc_output *output)
{
	uint32_t used = 0;

	bc_output_format(output, "| from \\\\ to |");
	for (unsigned to = 1; to < BC_FORMATS; to++)
		if (bc_format_info((enum bc_format)to)->can_write)
			bc_output_format(output, " %s |", bc_format_name((enum bc_format)to));
	bc_output_format(output, "\n|---|");
	for (unsigned to = 1; to < BC_FORMATS; to++)
		if (bc_format_info((enum bc_format)to)->can_write)
			bc_output_format(output, "---|");
	bc_output_text(output, "\n", 1);
	for (unsigned from = 1; from < BC_FORMATS; from++) {
		if (!bc_format_info((enum bc_format)from)->can_read)
			continue;
		bc_output_format(output, "| %s |", bc_format_name((enum bc_format)from));
		for (unsigned to = 1; to < BC_FORMATS; to++)
			if (bc_format_info((enum bc_format)to)->can_write)
				used |= print_cell(
					output, (enum bc_format)from, (enum bc_format)to);
		bc_output_text(output, "\n", 1);
	}
	bc_output_format(output, "\n=: lossless; -: impossible; letters: lost; letters in "
				 "parentheses: lost in some entries\n\n");
	for (; used != 0; used &= used - 1)
		bc_output_format(output, "- %c: %s\n", 'a' + __builtin_ctz(used),
			bc_trait_name(used & (0 - used)));
}

enum bc_exit bc_cmd_formats(const struct bc_console *console, int argc, char **argv)
{
	struct bc_options o;
	struct bc_output output;
	bool is_matrix = false;
	bool is_json = false;
	int letter;

	bc_options_start(&o, console, &bc_formats_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		if (letter == 'm')
			is_matrix = true;
		else if (letter == 'j')
			is_json = true;
		else
			return o.exit;
	}
	if (is_matrix + is_json + argc - optind > 1)
		return bc_print_usage_error(console, "give one of --json, --matrix and a layout");
	const struct bc_named_layout *row = optind < argc ? bc_layout_by_name(argv[optind]) : NULL;
	if (optind < argc && row == NULL)
		return bc_print_usage_error(
			console, "no such layout; see the end of buscap formats");
	if (!bc_output_open(&output, console))
		return BC_EXIT_FAILED;
	if (row != NULL)
		bc_output_format(&output, "%s\n", row->layout);
	else if (is_matrix)
		print_matrix(&output);
	else if (is_json)
		print_json_list(&output);
	else
		print_list(&output);
	return bc_output_close(&output, console);
}
