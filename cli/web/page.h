/* The page that `buscap web` serves and `buscap report` fills: one HTML document that loads
 * nothing, made of the files in cli/web/page (cli/web/page/README.md).
 *
 * Its element <script type="application/json" id="report"> is empty: the data comes from the
 * server. In a report, the data is in the element. */
#ifndef BC_CLI_WEB_PAGE_H
#define BC_CLI_WEB_PAGE_H

#include <stddef.h>

extern const char bc_page_html[]; /* without a terminating zero */
extern const size_t bc_page_html_bytes;

#endif
