/* The part of usbredir that a capture board has no use for: isochronous and interrupt transfers,
 * bulk streams. Each is answered with "invalid". */
#ifndef BC_TESTS_BOARD_USBREDIR_REFUSE_H
#define BC_TESTS_BOARD_USBREDIR_REFUSE_H

#include <usbredirparser.h>

/* Sets those callbacks of a parser whose `priv` is a struct peer. */
void refuse_callbacks(struct usbredirparser *parser);

#endif
