/* A library for LD_PRELOAD that makes selected file calls of a program fail, write short or hang.
 *
 * It intercepts pwrite, write, fdatasync, fsync, openat, renameat2, ftruncate, read, pread,
 * unlinkat, linkat, fallocate and fstatvfs on files in FAULTFS_DIR (an absolute path without
 * symbolic links) and its subdirectories. renameat counts as renameat2, posix_fallocate as
 * fallocate, and the 64-bit names count as the plain ones. Calls of each kind are numbered from 1.
 *
 *   FAULTFS_ENDING   intercept only files whose path has this ending
 *   FAULTFS          rules, separated by commas
 *   FAULTFS_CONTROL  a file with more rules; read at each call, so a test can change them
 *   FAULTFS_LOG      a log file with one line per call: kind, number, action, path
 *   FAULTFS_RECORD   a file that gets everything that changes files, in order: see Recording below
 *
 * A rule is KIND:ACTION (each call), KIND:N:ACTION (the Nth) or KIND:N+:ACTION (from the Nth on).
 * ACTION is an error (ENOSPC, EDQUOT, EIO, EROFS, EACCES, ENOENT, EPERM, ENOMEM, or EINVAL, which
 * spares a rename without flags), `short` (writes half, at least one byte; for pwrite, write, read
 * and pread), `slow` (delays the call by 300 ms), `hold` (blocks the call until the rule is removed
 * from the control file), `skip` (does nothing and reports success; for pwrite, fdatasync and
 * fsync), `unknown` (reports 0 of 0 blocks; for fstatvfs) or `kill` (kills the program before the
 * call). ACTION@NAME applies only while the file NAME exists in FAULTFS_DIR. The first matching
 * rule applies.
 *
 * It also ends a program that removes a closed descriptor from a loop. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define EXPORT        __attribute__((visibility("default")))
#define SAME_AS(name) __attribute__((alias(#name)))

enum kind {
	PWRITE,
	WRITE,
	FDATASYNC,
	FSYNC,
	OPENAT,
	RENAMEAT2,
	FTRUNCATE,
	READ,
	PREAD,
	UNLINKAT,
	LINKAT,
	FALLOCATE,
	FSTATVFS,
	KINDS
};

static const char *const kind_names[KINDS] = {"pwrite", "write", "fdatasync", "fsync", "openat",
	"renameat2", "ftruncate", "read", "pread", "unlinkat", "linkat", "fallocate", "fstatvfs"};

static const struct {
	const char *name;
	int number;
} errors[] = {{"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EIO", EIO}, {"EROFS", EROFS},
	{"EACCES", EACCES}, {"ENOENT", ENOENT}, {"EPERM", EPERM}, {"EINVAL", EINVAL},
	{"ENOMEM", ENOMEM}};

/* A positive action is an error number; others count down in `actions`. */
#define ACTION_NONE    0
#define ACTION_SHORT   (-1)
#define ACTION_HOLD    (-2)
#define ACTION_SLOW    (-3)
#define ACTION_SKIP    (-4)
#define ACTION_KILL    (-5)
#define ACTION_UNKNOWN (-6)

static const char *const actions[] = {"ok", "short", "hold", "slow", "skip", "kill", "unknown"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long counts[KINDS];

/* The library's own files are accessed by direct system calls, which are not intercepted. */

static size_t read_text(const char *path, char *text, size_t size)
{
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	long n = fd >= 0 ? syscall(SYS_read, fd, text, size - 1) : 0;

	if (fd >= 0)
		syscall(SYS_close, fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

static void append_text(const char *path, const char *text, size_t bytes)
{
	long fd = syscall(
		SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	syscall(SYS_write, fd, text, bytes);
	syscall(SYS_close, fd);
}

static bool read_link(char *out, size_t size, const char *link)
{
	long n = syscall(SYS_readlinkat, AT_FDCWD, link, out, size - 1);

	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static bool path_of_fd(char *out, size_t size, int fd)
{
	char link[48];

	if (fd == AT_FDCWD)
		return read_link(out, size, "/proc/self/cwd");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return read_link(out, size, link);
}

static bool path_at(char *out, size_t size, int dir_fd, const char *name)
{
	if (name[0] == '/')
		return (size_t)snprintf(out, size, "%s", name) < size;
	if (!path_of_fd(out, size, dir_fd))
		return false;
	size_t n = strlen(out);
	return (size_t)snprintf(out + n, size - n, "/%s", name) < size - n;
}

static bool is_watched(const char *path)
{
	const char *dir = getenv("FAULTFS_DIR");
	const char *ending = getenv("FAULTFS_ENDING");
	size_t n = dir != NULL ? strlen(dir) : 0;
	size_t bytes = strlen(path);

	if (ending != NULL &&
		(bytes < strlen(ending) || strcmp(path + bytes - strlen(ending), ending) != 0))
		return false;
	return n != 0 && strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Rules */

static int read_action(const char *text, size_t n)
{
	for (int i = 1; i < (int)(sizeof(actions) / sizeof(actions[0])); i++)
		if (strlen(actions[i]) == n && strncmp(actions[i], text, n) == 0)
			return -i;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strlen(errors[i].name) == n && strncmp(text, errors[i].name, n) == 0)
			return errors[i].number;
	fprintf(stderr, "faultfs: %.*s: no such action\n", (int)n, text);
	abort();
}

static bool has_file(const char *name, size_t n)
{
	char path[4096];
	const char *dir = getenv("FAULTFS_DIR");

	snprintf(path, sizeof(path), "%s/%.*s", dir != NULL ? dir : "", (int)n, name);
	return access(path, F_OK) == 0;
}

/* Returns the action of one rule for this call, or ACTION_NONE. */
static int match(const char *rule, size_t length, enum kind kind, unsigned long number)
{
	size_t n = strlen(kind_names[kind]);
	const char *end = rule + length;

	if (length <= n || strncmp(rule, kind_names[kind], n) != 0 || rule[n] != ':')
		return ACTION_NONE;
	rule += n + 1;
	if (*rule >= '0' && *rule <= '9') {
		char *rest;
		unsigned long wanted = strtoul(rule, &rest, 10);
		bool is_open = *rest == '+';
		if (number < wanted || (number > wanted && !is_open))
			return ACTION_NONE;
		rule = rest + is_open + 1;
	}
	const char *at = memchr(rule, '@', (size_t)(end - rule));
	if (at != NULL && !has_file(at + 1, (size_t)(end - at - 1)))
		return ACTION_NONE;
	return read_action(rule, (size_t)((at != NULL ? at : end) - rule));
}

static int find_rule(const char *rules, enum kind kind, unsigned long number)
{
	int action = ACTION_NONE;

	while (action == ACTION_NONE && *rules != '\0') {
		size_t n = strcspn(rules, ",\n");
		action = match(rules, n, kind, number);
		rules += n + (rules[n] != '\0');
	}
	return action;
}

static int find_action(enum kind kind, unsigned long number)
{
	const char *rules = getenv("FAULTFS");
	const char *control = getenv("FAULTFS_CONTROL");
	char text[1024];
	int action = rules != NULL ? find_rule(rules, kind, number) : ACTION_NONE;

	if (action == ACTION_NONE && control != NULL && read_text(control, text, sizeof(text)) != 0)
		action = find_rule(text, kind, number);
	return action;
}

static void log_call(enum kind kind, unsigned long number, int action, const char *path)
{
	const char *log = getenv("FAULTFS_LOG");
	char line[4096 + 64];

	if (log == NULL)
		return;
	int n = snprintf(line, sizeof(line), "%s %lu %s %s\n", kind_names[kind], number,
		action > 0 ? strerrorname_np(action) : actions[-action], path);
	append_text(log, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

/* Counts and logs a call on this path, and delays it if the rules say so. Returns an error number
 * (positive) if the call must fail, ACTION_SHORT, or another action that leaves the call intact. */
static int judge(enum kind kind, const char *path)
{
	int saved = errno;

	if (!is_watched(path))
		return ACTION_NONE;
	pthread_mutex_lock(&lock);
	unsigned long number = ++counts[kind];
	pthread_mutex_unlock(&lock);
	int action = find_action(kind, number);
	log_call(kind, number, action, path);
	if (action == ACTION_KILL)
		raise(SIGKILL);
	if (action == ACTION_SLOW)
		nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
	while (action == ACTION_HOLD) {
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		action = find_action(kind, number);
	}
	errno = saved;
	return action;
}

static int judge_fd(enum kind kind, int fd)
{
	char path[4096];

	return path_of_fd(path, sizeof(path), fd) ? judge(kind, path) : ACTION_NONE;
}

static int judge_at(enum kind kind, int dir_fd, const char *name)
{
	char path[4096];

	return path_at(path, sizeof(path), dir_fd, name) ? judge(kind, path) : ACTION_NONE;
}

static size_t cut_short(int action, size_t count)
{
	return action == ACTION_SHORT && count > 1 ? count / 2 : count;
}

static int fail(int error)
{
	errno = error;
	return -1;
}

/* Recording
 *
 * For each call that changed something, FAULTFS_RECORD gets a line
 *
 *     KIND INODE OFFSET BYTES NAME[/NEW NAME]
 *
 * and, after a write, that many bytes. NAME is relative to FAULTFS_DIR, which is "." itself. KIND
 * is `create` for an openat that created the file. OFFSET is a new length for ftruncate and
 * fallocate. The lock is held during the call, so the order is the true one. */

static pthread_mutex_t record_lock = PTHREAD_MUTEX_INITIALIZER;

static bool start_record(void)
{
	if (getenv("FAULTFS_RECORD") == NULL)
		return false;
	pthread_mutex_lock(&record_lock);
	return true;
}

static const char *relative(const char *path)
{
	size_t n = strlen(getenv("FAULTFS_DIR"));

	return path[n] == '/' ? path + n + 1 : ".";
}

static void append_record(const char *kind, unsigned long inode, long long offset, const void *data,
	size_t bytes, const char *name)
{
	char line[4096 + 128];
	int n = snprintf(
		line, sizeof(line), "%s %lu %lld %zu %s\n", kind, inode, offset, bytes, name);
	struct iovec parts[] = {{line, (size_t)n}, {(void *)(size_t)data, bytes}};
	long fd = syscall(SYS_openat, AT_FDCWD, getenv("FAULTFS_RECORD"),
		O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	syscall(SYS_writev, fd, parts, 2);
	syscall(SYS_close, fd);
}

static void end_record(void)
{
	pthread_mutex_unlock(&record_lock);
}

/* Ends a call on an open file that has changed `bytes` bytes, or that failed if negative. */
static void end_record_fd(
	bool is_recorded, enum kind kind, int fd, long long offset, const void *data, ssize_t bytes)
{
	char path[4096];
	struct stat st;
	int saved = errno;

	if (!is_recorded)
		return;
	if (bytes >= 0 && path_of_fd(path, sizeof(path), fd) && is_watched(path) &&
		fstat(fd, &st) == 0)
		append_record(kind_names[kind], st.st_ino, offset, data,
			data != NULL ? (size_t)bytes : 0, relative(path));
	end_record();
	errno = saved;
}

static void end_record_open(bool is_recorded, bool is_new, int flags, int fd)
{
	char path[4096];
	struct stat st;
	int saved = errno;

	if (!is_recorded)
		return;
	if (fd >= 0 && path_of_fd(path, sizeof(path), fd) && is_watched(path) &&
		fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		if (is_new)
			append_record("create", st.st_ino, 0, NULL, 0, relative(path));
		else if (flags & O_TRUNC)
			append_record("ftruncate", st.st_ino, 0, NULL, 0, relative(path));
	}
	end_record();
	errno = saved;
}

/* `from` is NULL for unlinkat. */
static void end_record_names(
	bool is_recorded, int rc, int from_fd, const char *from, int to_fd, const char *to)
{
	char path[4096];
	char new_path[4096];
	char names[4096];
	struct stat st = {0};
	int saved = errno;

	if (!is_recorded)
		return;
	if (rc == 0 && path_at(new_path, sizeof(new_path), to_fd, to) && is_watched(new_path)) {
		if (from == NULL) {
			append_record("unlinkat", 0, 0, NULL, 0, relative(new_path));
		} else if (path_at(path, sizeof(path), from_fd, from) && is_watched(path)) {
			snprintf(names, sizeof(names), "%s/%s", relative(path), relative(new_path));
			fstatat(to_fd, to, &st, AT_SYMLINK_NOFOLLOW);
			append_record("renameat2", st.st_ino, 0, NULL, 0, names);
		}
	}
	end_record();
	errno = saved;
}

/* The intercepted calls. dlsym() returns an object pointer; memcpy() converts it to a function
 * pointer without a cast that ISO C forbids. */
#define REAL(call)                                      \
	static __typeof__(&(call)) real;                \
	if (real == NULL) {                             \
		void *symbol = dlsym(RTLD_NEXT, #call); \
		memcpy(&real, &symbol, sizeof(real));   \
	}

EXPORT ssize_t pwrite(int fd, const void *data, size_t count, off_t offset)
{
	REAL(pwrite)
	int action = judge_fd(PWRITE, fd);

	if (action > 0 || action == ACTION_SKIP)
		return action > 0 ? fail(action) : (ssize_t)count;
	bool is_recorded = start_record();
	ssize_t n = real(fd, data, cut_short(action, count), offset);
	end_record_fd(is_recorded, PWRITE, fd, offset, data, n);
	return n;
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t count, off_t offset) SAME_AS(pwrite);

EXPORT ssize_t write(int fd, const void *data, size_t count)
{
	REAL(write)
	int action = judge_fd(WRITE, fd);

	if (action > 0)
		return fail(action);
	bool is_recorded = start_record();
	ssize_t n = real(fd, data, cut_short(action, count));
	off_t end = is_recorded ? lseek(fd, 0, SEEK_CUR) : 0;
	end_record_fd(is_recorded, WRITE, fd, end - n, data, n);
	return n;
}

EXPORT ssize_t read(int fd, void *data, size_t count)
{
	REAL(read)
	int action = judge_fd(READ, fd);

	return action > 0 ? fail(action) : real(fd, data, cut_short(action, count));
}

EXPORT ssize_t pread(int fd, void *data, size_t count, off_t offset)
{
	REAL(pread)
	int action = judge_fd(PREAD, fd);

	return action > 0 ? fail(action) : real(fd, data, cut_short(action, count), offset);
}

EXPORT ssize_t pread64(int fd, void *data, size_t count, off_t offset) SAME_AS(pread);

EXPORT int fdatasync(int fd)
{
	REAL(fdatasync)
	int action = judge_fd(FDATASYNC, fd);

	if (action > 0 || action == ACTION_SKIP)
		return action > 0 ? fail(action) : 0;
	bool is_recorded = start_record();
	int rc = real(fd);
	end_record_fd(is_recorded, FDATASYNC, fd, 0, NULL, rc);
	return rc;
}

EXPORT int fsync(int fd)
{
	REAL(fsync)
	int action = judge_fd(FSYNC, fd);

	if (action > 0 || action == ACTION_SKIP)
		return action > 0 ? fail(action) : 0;
	bool is_recorded = start_record();
	int rc = real(fd);
	end_record_fd(is_recorded, FSYNC, fd, 0, NULL, rc);
	return rc;
}

EXPORT int ftruncate(int fd, off_t length)
{
	REAL(ftruncate)
	int action = judge_fd(FTRUNCATE, fd);

	if (action > 0)
		return fail(action);
	bool is_recorded = start_record();
	int rc = real(fd, length);
	end_record_fd(is_recorded, FTRUNCATE, fd, length, NULL, rc);
	return rc;
}

EXPORT int ftruncate64(int fd, off_t length) SAME_AS(ftruncate);

EXPORT int fallocate(int fd, int mode, off_t offset, off_t length)
{
	REAL(fallocate)
	int action = judge_fd(FALLOCATE, fd);

	if (action > 0)
		return fail(action);
	bool is_recorded = start_record();
	int rc = real(fd, mode, offset, length);
	end_record_fd(is_recorded, FALLOCATE, fd, mode == 0 ? offset + length : 0, NULL, rc);
	return rc;
}

EXPORT int fallocate64(int fd, int mode, off_t offset, off_t length) SAME_AS(fallocate);

EXPORT int posix_fallocate(int fd, off_t offset, off_t length)
{
	return fallocate(fd, 0, offset, length) == 0 ? 0 : errno;
}

EXPORT int posix_fallocate64(int fd, off_t offset, off_t length) SAME_AS(posix_fallocate);

EXPORT int fstatvfs(int fd, struct statvfs *out)
{
	REAL(fstatvfs)
	int action = judge_fd(FSTATVFS, fd);

	if (action == ACTION_UNKNOWN) {
		memset(out, 0, sizeof(*out));
		out->f_bsize = out->f_frsize = 4096;
		return 0;
	}
	return action > 0 ? fail(action) : real(fd, out);
}

static bool is_there(int dir_fd, const char *name)
{
	struct stat st;
	int saved = errno;
	bool is = fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;

	errno = saved;
	return is;
}

static int open_at(int dir_fd, const char *name, int flags, mode_t mode)
{
	REAL(openat)
	int action = judge_at(OPENAT, dir_fd, name);

	if (action > 0)
		return fail(action);
	bool is_recorded = start_record();
	bool is_new = is_recorded && (flags & O_CREAT) != 0 && !is_there(dir_fd, name);
	int fd = real(dir_fd, name, flags, mode);
	end_record_open(is_recorded, is_new, flags, fd);
	return fd;
}

static mode_t mode_of(int flags, va_list args)
{
	return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t)
									  : 0;
}

EXPORT int openat(int dir_fd, const char *name, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = mode_of(flags, args);
	va_end(args);
	return open_at(dir_fd, name, flags, mode);
}

EXPORT int openat64(int dir_fd, const char *name, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = mode_of(flags, args);
	va_end(args);
	return open_at(dir_fd, name, flags, mode);
}

EXPORT int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	REAL(renameat2)
	int action = judge_at(RENAMEAT2, to_fd, to);

	if (action > 0 && (action != EINVAL || flags != 0))
		return fail(action);
	bool is_recorded = start_record();
	int rc = real(from_fd, from, to_fd, to, flags);
	end_record_names(is_recorded, rc, from_fd, from, to_fd, to);
	return rc;
}

EXPORT int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	return renameat2(from_fd, from, to_fd, to, 0);
}

EXPORT int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	REAL(linkat)
	int action = judge_at(LINKAT, to_fd, to);

	return action > 0 ? fail(action) : real(from_fd, from, to_fd, to, flags);
}

EXPORT int unlinkat(int dir_fd, const char *name, int flags)
{
	REAL(unlinkat)
	int action = judge_at(UNLINKAT, dir_fd, name);

	if (action > 0)
		return fail(action);
	bool is_recorded = start_record();
	int rc = real(dir_fd, name, flags);
	end_record_names(is_recorded, rc, 0, NULL, dir_fd, name);
	return rc;
}

/* Injects nothing: ends a program that removes a closed descriptor from a loop. By then the number
 * may belong to a descriptor that another thread has just opened. */
EXPORT int epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
	long rc = syscall(SYS_epoll_ctl, epoll_fd, operation, fd, event);

	if (rc != 0 && errno == EBADF) {
		fprintf(stderr, "epoll_ctl of the closed descriptor %d\n", fd);
		abort();
	}
	return (int)rc;
}
