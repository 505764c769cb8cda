/* Giving way to a recorder: reading its files must not cost samples. */
#ifndef BC_CLI_IO_GIVE_WAY_H
#define BC_CLI_IO_GIVE_WAY_H

/* Gives the calling thread, and threads that it starts, the lowest priority for the processor and
 * the disk if a daemon is running in the directory `path`, or in the directory of the file `path`.
 * Call before reading; it stays so. Otherwise, or if that can't be told, nothing changes. */
void bc_give_way(const char *path);

#endif
