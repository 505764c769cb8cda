/* The compressor of tests for which any will do. */
#ifndef BC_TESTS_SUPPORT_COMPRESSOR_H
#define BC_TESTS_SUPPORT_COMPRESSOR_H

#include "formats/segment/segment.h"

static const struct bc_compressor test_compressor = {.level = BC_LEVEL_DEFAULT};

#endif
