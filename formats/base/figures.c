#include "formats/base/figures.h"

#define FIGURE(name, type, value, ...) ROW(__VA_ARGS__, .path = (name))
#define ROW(of, text, ...)             {.metric = (of), .help = (text), __VA_ARGS__},
#define LABEL(name)                    .label = (name)
#define STATES(values)                 .states = (values)
#define SHOWN(where, how, one, rest) \
	.line = BC_FIGURE_##where, .tone = BC_TONE_##how, .word = (one), .after = (rest)

const struct bc_figure bc_figures[] = {
#include "formats/base/figure_rows.h"
};

const size_t bc_figures_count = sizeof(bc_figures) / sizeof(bc_figures[0]);
