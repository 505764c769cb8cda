/* libmicrohttpd's functions, as members of bc_mhd; loaded late (formats/base/late_library.h). */
#ifndef BC_DAEMON_HTTP_MHD_H
#define BC_DAEMON_HTTP_MHD_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "formats/base/late_library.h"

#define BC_MHD_FUNCTIONS(F)                                       \
	F(MHD_add_connection)                                     \
	F(MHD_add_response_header)                                \
	F(MHD_create_response_from_buffer)                        \
	F(MHD_create_response_from_buffer_with_free_callback_cls) \
	F(MHD_create_response_from_callback)                      \
	F(MHD_destroy_response)                                   \
	F(MHD_get_connection_info)                                \
	F(MHD_get_connection_values)                              \
	F(MHD_get_daemon_info)                                    \
	F(MHD_get_timeout)                                        \
	F(MHD_lookup_connection_value)                            \
	F(MHD_lookup_connection_value_n)                          \
	F(MHD_queue_response)                                     \
	F(MHD_resume_connection)                                  \
	F(MHD_run)                                                \
	F(MHD_set_connection_option)                              \
	F(MHD_start_daemon)                                       \
	F(MHD_stop_daemon)                                        \
	F(MHD_suspend_connection)

extern struct bc_mhd {
	BC_MHD_FUNCTIONS(BC_LATE_POINTER)
} bc_mhd;

/* Loads the library and sets bc_mhd. Returns false, with a message in `err`, if that fails. */
bool bc_mhd_load(char *err, size_t errlen) BC_MUST_CHECK;

#endif
