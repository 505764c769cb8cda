/* Refuses the parts of usbredir that a capture board does not support: isochronous and interrupt
 * transfers, and bulk streams. Each is answered with "invalid". */
#ifndef BC_TESTS_BOARD_USBREDIR_REFUSE_H
#define BC_TESTS_BOARD_USBREDIR_REFUSE_H

#include <usbredirparser.h>

/* Sets these callbacks of a parser whose `priv` is a struct peer. */
void refuse_callbacks(struct usbredirparser *parser);

#endif
