/* Loaded between a program and libumockdev-preload, it fixes faults of 0.17.16 that break long
 * tests of multithreaded programs. LD_PRELOAD=preload_fix.so
 * libumockdev-preload.so.0
 *
 * - A failed open() in /dev leaves a connection registered under descriptor -1; the 50th aborts
 * the
 *   program. close(-1) frees it.
 * - Around each call with a path it blocks all signals, and saves the mask in one variable for all
 *   threads. A thread may thus restore another's mask, for example the loop thread that of a
 *   thread
 *   which blocks everything, and never see SIGTERM again. Here each thread saves its own.
 * - After each ioctl() it calls a zero-length sleep, which takes 50 us. */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);

/* Where umockdev's library is mapped; 0: not known yet, or not loaded. */
static uintptr_t library_begin, library_end;
static _Thread_local sigset_t kept;

static int check_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
	(void)bytes;
	(void)data;
	if (strstr(info->dlpi_name, "libumockdev-preload") == NULL)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		if (part->p_type == PT_LOAD)
			library_end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
	}
	library_begin = info->dlpi_addr;
	return 1;
}

__attribute__((constructor)) static void find_library(void)
{
	dl_iterate_phdr(check_object, NULL);
}

static bool is_umockdevs(const void *p)
{
	return (uintptr_t)p >= library_begin && (uintptr_t)p < library_end;
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	static int (*next)(int, const sigset_t *, sigset_t *);

	if (next == NULL)
		next = (int (*)(int, const sigset_t *, sigset_t *))dlsym(
			RTLD_NEXT, "pthread_sigmask");
	if (old != NULL && is_umockdevs(old))
		return next(how, set, &kept);
	if (set != NULL && is_umockdevs(set))
		return next(how, &kept, old);
	return next(how, set, old);
}

int usleep(useconds_t us)
{
	static int (*next)(useconds_t);

	if (us == 0)
		return sched_yield();
	if (next == NULL)
		next = (int (*)(useconds_t))dlsym(RTLD_NEXT, "usleep");
	return next(us);
}

static int freed(int fd)
{
	static int (*next)(int);
	int err = errno;

	if (fd >= 0)
		return fd;
	if (next == NULL)
		next = (int (*)(int))dlsym(RTLD_NEXT, "close");
	next(-1);
	errno = err;
	return fd;
}

#define OPEN(name)                                                                       \
	int name(const char *path, int flags, ...)                                       \
	{                                                                                \
		static int (*next)(const char *, int, ...);                              \
		mode_t mode = 0;                                                         \
		va_list rest;                                                            \
                                                                                         \
		if (next == NULL)                                                        \
			next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name); \
		va_start(rest, flags);                                                   \
		if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE)               \
			mode = va_arg(rest, mode_t);                                     \
		va_end(rest);                                                            \
		return freed(next(path, flags, mode));                                   \
	}

#define OPEN_2(name)                                                                \
	int name(const char *path, int flags)                                       \
	{                                                                           \
		static int (*next)(const char *, int);                              \
                                                                                    \
		if (next == NULL)                                                   \
			next = (int (*)(const char *, int))dlsym(RTLD_NEXT, #name); \
		return freed(next(path, flags));                                    \
	}

OPEN(open)
OPEN(open64)
OPEN_2(__open_2)
OPEN_2(__open64_2)
