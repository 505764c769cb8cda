#include "cli/overview/page.h"

#include "formats/base/embed.h"

BC_EMBED(bc_page_html, "build/cli/overview/page.html");
