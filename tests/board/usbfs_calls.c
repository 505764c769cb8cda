/* Replacements for the C library functions that libusb, or a program reading sysfs, calls. The
 * linker prefers the program's own definitions to the library's. */
#undef _FORTIFY_SOURCE /* with it, open() would be an inline function */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tests/board/usbfs_kernel.h"

/* The next definition: the sanitizer's, if any, else the library's. dlsym() returns an object
 * pointer; a function pointer is needed. */
#define REAL(call)                                                                 \
	static _Atomic(void *) real_symbol;                                        \
	__typeof__(&(call)) real;                                                  \
	void *symbol = atomic_load_explicit(&real_symbol, memory_order_acquire);   \
	if (symbol == NULL) {                                                      \
		symbol = dlsym(RTLD_NEXT, #call);                                  \
		atomic_store_explicit(&real_symbol, symbol, memory_order_release); \
	}                                                                          \
	memcpy(&real, &symbol, sizeof(real));

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir_fd, const char *path, int flags);
int __openat64_2(int dir_fd, const char *path, int flags);

static const char *skip_prefix(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 ? path + n : NULL;
}

#define NOT_OURS (-2)

static int result(int value)
{
	if (value >= 0)
		return value;
	errno = -value;
	return -1;
}

/* Opens the simulated file at this path. Returns a descriptor, -1 with errno, or NOT_OURS. */
static int open_ours(const char *path)
{
	const char *node = skip_prefix(path, "/dev/bus/usb/");
	const char *file = skip_prefix(path, "/sys/bus/usb/devices/");
	char device[16];
	char attribute[32];
	unsigned bus;
	unsigned address;

	if ((node == NULL && file == NULL) || !usbfs_is_started())
		return NOT_OURS;
	if (node != NULL && sscanf(node, "%3u/%3u", &bus, &address) == 2)
		return result(usbfs_node_open(bus, address));
	if (file != NULL && sscanf(file, "%15[^/]/%31[^/]", device, attribute) == 2)
		return result(usbfs_attribute_open(device, attribute));
	return result(-ENOENT);
}

static mode_t mode_of(int flags, va_list args)
{
	return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t)
									  : 0;
}

static int open_at(int dir_fd, const char *path, int flags, mode_t mode)
{
	REAL(openat)
	int fd = open_ours(path);

	return fd != NOT_OURS ? fd : real(dir_fd, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = mode_of(flags, args);
	va_end(args);
	return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = mode_of(flags, args);
	va_end(args);
	return open_at(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int openat(int dir_fd, const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = mode_of(flags, args);
	va_end(args);
	return open_at(dir_fd, path, flags, mode);
}

int openat64(int dir_fd, const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = mode_of(flags, args);
	va_end(args);
	return open_at(dir_fd, path, flags | O_LARGEFILE, mode);
}

int __open_2(const char *path, int flags)
{
	return open_at(AT_FDCWD, path, flags, 0);
}

int __open64_2(const char *path, int flags)
{
	return open_at(AT_FDCWD, path, flags | O_LARGEFILE, 0);
}

int __openat_2(int dir_fd, const char *path, int flags)
{
	return open_at(dir_fd, path, flags, 0);
}

int __openat64_2(int dir_fd, const char *path, int flags)
{
	return open_at(dir_fd, path, flags | O_LARGEFILE, 0);
}

int close(int fd)
{
	REAL(close)
	if (usbfs_is_node(fd))
		return result(usbfs_node_close(fd));
	return real(fd);
}

int ioctl(int fd, unsigned long request, ...)
{
	REAL(ioctl)
	va_list args;

	va_start(args, request);
	void *argument = va_arg(args, void *);
	va_end(args);
	/* The kernel handles FIONBIO itself for any descriptor; it is already set. */
	if (usbfs_is_node(fd) && request != FIONBIO)
		return result(usbfs_node_ioctl(fd, request, argument));
	return real(fd, request, argument);
}

/* A node can be accessed if it can be opened. */
int access(const char *path, int mode)
{
	REAL(access)
	int fd = open_ours(path);

	if (fd == NOT_OURS)
		return real(path, mode);
	return fd >= 0 ? close(fd) : -1;
}

/* libusb checks once whether sysfs is mounted. */
int statfs(const char *path, struct statfs *out)
{
	REAL(statfs)

	if (!usbfs_is_started() || strcmp(path, "/sys") != 0)
		return real(path, out);
	memset(out, 0, sizeof(*out));
	out->f_type = SYSFS_MAGIC;
	return 0;
}

int statfs64(const char *path, struct statfs64 *out)
{
	REAL(statfs64)

	if (!usbfs_is_started() || strcmp(path, "/sys") != 0)
		return real(path, out);
	memset(out, 0, sizeof(*out));
	out->f_type = SYSFS_MAGIC;
	return 0;
}
