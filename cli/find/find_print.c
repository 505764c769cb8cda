#include "cli/find/find_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/io/name_args.h"
#include "formats/base/rfc3339.h"
#include "formats/search/hit_json.h"

static bool is_port(const struct bc_entry *entry)
{
	return entry->kind == BC_ENTRY_REFERENCE && bc_is_port_access(entry->type);
}

void bc_find_print(struct bc_find *f, const struct bc_search_hit *hit)
{
	char wall[BC_RFC3339_BYTES] = "-";
	uint64_t named = hit->is_context ? hit->entry.addr
					 : bc_filter_touched(&f->args.filter, &hit->entry);

	if (f->is_json) {
		json_t *name = bc_name_map_json(f->names, is_port(&hit->entry), named);
		if (!bc_output_json_value(&f->output, bc_search_hit_json(hit, name)))
			f->exit = bc_exit_worse(f->exit, bc_print_no_memory(f->console));
		return;
	}
	if (f->options.context != 0 && f->has_printed && !hit->follows)
		bc_output_text(&f->output, "--\n", 3);
	f->has_printed = true;
	if (f->options.context != 0)
		bc_output_text(&f->output, hit->is_context ? "  " : "> ", 2);
	if (hit->has_wall)
		bc_rfc3339_write(wall, hit->wall_ns);
	bc_output_format(&f->output, "%10" PRIu64 "  %s  ", hit->entry.number, wall);
	bc_output_safe(&f->output, hit->file);
	bc_output_format(&f->output, "  %s", hit->text);
	bc_name_print(&f->output, f->names, is_port(&hit->entry), named, "  (", ")");
	bc_output_text(&f->output, "\n", 1);
}
