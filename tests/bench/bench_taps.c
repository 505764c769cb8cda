/* Measures the cost of live records for the event loop. Passes batches of records to 0, 1 and 8
 * taps as fast as possible, with 1 ns per record in place of decoding. Clients in another process
 * read them or not. Prints the time per record in bc_taps_records(), and the shares of
 * bc_taps_records() and of the loop's callbacks in the total time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/http/server.h"
#include "daemon/live/tap.h"
#include "formats/base/clock.h"
#include "tests/support/dice.h"

#define BATCH  2048u
#define RUN_NS UINT64_C(2000000000)

struct bench {
	uv_loop_t loop;
	struct bc_server *server;
	struct bc_taps *taps;
	struct bc_chunk chunk;
	struct bc_filter filter;
	struct sockaddr_un address;
	socklen_t address_bytes;
	int listen_fd;
};

static void check(bool is_true, const char *what)
{
	if (is_true)
		return;
	perror(what);
	exit(1);
}

static void on_request(void *context, struct bc_request *request)
{
	struct bench *b = context;

	check(bc_taps_add(b->taps, request, &b->filter, 0) == 0, "bc_taps_add");
}

static void open_bench(struct bench *b)
{
	struct bc_server_options options = {
		.is_local = true, .connections_max = 8, .context = b, .request = on_request};
	char err[256];

	b->address.sun_family = AF_UNIX;
	b->address_bytes = sizeof(b->address);
	b->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	check(bind(b->listen_fd, (struct sockaddr *)&b->address, sizeof(sa_family_t)) == 0 &&
			getsockname(b->listen_fd, (struct sockaddr *)&b->address,
				&b->address_bytes) == 0 &&
			listen(b->listen_fd, 8) == 0,
		"socket");
	options.listen_fd = b->listen_fd;
	check(uv_loop_init(&b->loop) == 0 && bc_taps_open(&b->taps, &b->loop) == 0 &&
			bc_server_load(err, sizeof(err)) &&
			bc_server_start(&b->server, &b->loop, &options) == 0,
		"server");
}

static void close_bench(struct bench *b)
{
	bc_server_close(b->server);
	bc_taps_close(b->taps);
	uv_run(&b->loop, UV_RUN_DEFAULT);
	check(uv_loop_close(&b->loop) == 0, "uv_loop_close");
	close(b->listen_fd);
}

static void fill_chunk(struct bc_chunk *chunk)
{
	struct dice dice = {.state = 1};

	bc_chunk_reset(chunk, 0, 0);
	while (chunk->info.records < BC_CHUNK_RECORDS) {
		uint64_t roll = dice_roll(&dice);
		struct bc_record r = {.addr = (uint32_t)roll,
			.reqtype = (uint8_t)(roll >> 32 & 3),
			.size = 8,
			.time = (uint32_t)(roll >> 40 & 15)};
		bc_record_store(
			chunk->records + (size_t)chunk->info.records++ * BC_RECORD_BYTES, &r);
	}
}

/* Starts a process that opens n streams, and reads them if `reads`. Returns its pid. */
static pid_t start_clients(const struct bench *b, unsigned n, bool reads)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
	char bytes[65536];
	int fds[BC_TAPS_MAX];
	pid_t pid = fork();

	check(pid >= 0, "fork");
	if (pid != 0)
		return pid;
	for (unsigned i = 0; i < n; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM, 0);
		if (connect(fds[i], (const struct sockaddr *)&b->address, b->address_bytes) != 0 ||
			write(fds[i], request, sizeof(request) - 1) < 0)
			_exit(1);
	}
	for (;;) {
		bool is_idle = true;
		for (unsigned i = 0; reads && i < n; i++) {
			ssize_t got = recv(fds[i], bytes, sizeof(bytes), MSG_DONTWAIT);
			if (got == 0)
				_exit(0);
			is_idle = is_idle && got < 0;
		}
		if (getppid() == 1)
			_exit(0);
		if (is_idle)
			usleep(1000);
	}
}

static void bench_clients(struct bench *b, const char *name, unsigned n, bool reads)
{
	uint64_t in_taps_ns = 0;
	uint64_t in_loop_ns = 0;
	uint64_t records = 0;
	pid_t clients = n != 0 ? start_clients(b, n, reads) : 0;

	while (bc_taps_count(b->taps) != n)
		uv_run(&b->loop, UV_RUN_NOWAIT);
	uint64_t start_ns = bc_now_ns();
	uint64_t now_ns = start_ns;
	while (now_ns - start_ns < RUN_NS) {
		for (uint32_t at = 0; at + BATCH <= BC_CHUNK_RECORDS; at += BATCH) {
			b->chunk.info.records = at + BATCH;
			uint64_t decoded_ns = now_ns + BATCH;
			while (now_ns < decoded_ns)
				now_ns = bc_now_ns();
			bc_taps_records(b->taps, &b->chunk, at, 0, 0);
			uint64_t shown_ns = bc_now_ns();
			in_taps_ns += shown_ns - now_ns;
			uv_run(&b->loop, UV_RUN_NOWAIT);
			now_ns = bc_now_ns();
			in_loop_ns += now_ns - shown_ns;
			records += BATCH;
		}
	}
	double all = (double)(now_ns - start_ns);
	printf("  %-34s %6.3f ns per record, %5.2f %% of the time; loop %5.2f %%; %4.0f M "
	       "records/s\n",
		name, (double)in_taps_ns / (double)records, 100 * (double)in_taps_ns / all,
		100 * (double)in_loop_ns / all, (double)records * 1e3 / all);
	if (clients != 0) {
		kill(clients, SIGKILL);
		waitpid(clients, NULL, 0);
	}
	while (bc_taps_count(b->taps) != 0)
		uv_run(&b->loop, UV_RUN_NOWAIT);
}

int main(void)
{
	struct bench *b = calloc(1, sizeof(*b));

	check(b != NULL, "calloc");
	signal(SIGPIPE, SIG_IGN);
	open_bench(b);
	fill_chunk(&b->chunk);
	printf("live records, batches of %u:\n", BATCH);
	bc_filter_init(&b->filter);
	bench_clients(b, "no tap", 0, true);
	bench_clients(b, "1 tap, all records", 1, true);
	bench_clients(b, "8 taps, all records", 8, true);
	bench_clients(b, "8 taps, all records, not read", 8, false);
	b->filter.has_addr = true;
	b->filter.addr = (struct bc_span){0x100000, 0x10FFFF};
	bench_clients(b, "1 tap, 64 KiB of addresses", 1, true);
	bench_clients(b, "8 taps, 64 KiB of addresses", 8, true);
	close_bench(b);
	free(b);
	return 0;
}
