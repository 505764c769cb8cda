/* The process's limit of open descriptors (RLIMIT_NOFILE). */
#ifndef BC_DAEMON_BASE_DESCRIPTORS_H
#define BC_DAEMON_BASE_DESCRIPTORS_H

/* Returns how many more descriptors can be opened, at most `wanted`. Raises the soft limit if that
 * is necessary and the hard limit allows it. */
unsigned bc_descriptors_left(unsigned wanted);

#endif
