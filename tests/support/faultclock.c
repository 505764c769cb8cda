/* A library for LD_PRELOAD that moves a program's time of day: clocks, and the times of the files
 * that it writes. It also moves the time since the machine was started: what the program reads of
 * it, but not when a wait for such a time ends.
 *
 * FAULTCLOCK_CONTROL names a file with two 64-bit numbers of nanoseconds to add to these clocks. A
 * test may change them at any time, because both map it: tests/support/harness.py, MovedClock. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static _Atomic int64_t *offsets_ns;

__attribute__((constructor)) static void map_control(void)
{
	const char *path = getenv("FAULTCLOCK_CONTROL");
	int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	void *map = mmap(NULL, 2 * sizeof(*offsets_ns), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		offsets_ns = map;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);
	bool is_of_day = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
	bool is_of_machine = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ||
			     clock == CLOCK_BOOTTIME;

	if (rc != 0 || offsets_ns == NULL || (!is_of_day && !is_of_machine))
		return rc;
	int64_t ns = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec +
		     atomic_load(&offsets_ns[is_of_machine]);
	now->tv_sec = ns / 1000000000;
	now->tv_nsec = ns % 1000000000;
	return 0;
}

EXPORT int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec time;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &time);
	*now = (struct timeval){.tv_sec = time.tv_sec, .tv_usec = time.tv_nsec / 1000};
	return 0;
}

EXPORT time_t time(time_t *out)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (out != NULL)
		*out = now.tv_sec;
	return now.tv_sec;
}

EXPORT ssize_t pwrite(int fd, const void *data, size_t count, off_t offset)
{
	static ssize_t (*real)(int, const void *, size_t, off_t);
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};

	if (real == NULL) {
		void *symbol = dlsym(RTLD_NEXT, "pwrite");
		memcpy(&real, &symbol, sizeof(real));
	}
	ssize_t n = real(fd, data, count, offset);
	if (n > 0) {
		clock_gettime(CLOCK_REALTIME, &times[1]);
		futimens(fd, times);
	}
	return n;
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t count, off_t offset)
{
	return pwrite(fd, data, count, offset);
}
