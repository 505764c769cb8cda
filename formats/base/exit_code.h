/* The exit codes of both programs; --help lists them. */
#ifndef BC_FORMATS_BASE_EXIT_CODE_H
#define BC_FORMATS_BASE_EXIT_CODE_H

enum bc_exit {
	BC_EXIT_OK = 0,
	BC_EXIT_FAILED = 1,
	BC_EXIT_USAGE = 2,
	BC_EXIT_DAMAGED = 3,     /* the input is damaged or torn; its intact parts were processed */
	BC_EXIT_LOST = 4,        /* buscapd: finished, but samples were lost */
	BC_EXIT_NO_DEVICE = 5,   /* buscapd --once: no board appeared in time */
	BC_EXIT_UNREACHABLE = 6, /* buscap: can't connect to the daemon */
};

#endif
