/* Why an LZ4 frame can't be decoded. */
#ifndef BC_FORMATS_BASE_LZ4_ERROR_H
#define BC_FORMATS_BASE_LZ4_ERROR_H

#include <errno.h>
#include <lz4frame.h>
#include <string.h>

/* What an error code of LZ4F_decompress() means: -ENOMEM, or -EBADMSG for damaged data. */
static inline int bc_lz4_error(size_t code)
{
	/* liblz4 publishes the names of its codes, not their numbers. */
	return strcmp(LZ4F_getErrorName(code), "ERROR_allocation_failed") == 0 ? -ENOMEM : -EBADMSG;
}

#endif
