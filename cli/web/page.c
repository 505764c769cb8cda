#include "cli/web/page.h"

#include "formats/base/embed.h"

BC_EMBED(bc_page_html, "build/cli/web/page.html");
