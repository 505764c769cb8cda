/* The daemon's status (docs/api.md, /v1/status) as a struct, for `buscap status` and `buscap top`.
 * Whatever is missing or of another type is 0, empty or "not there". Texts are safe to print. */
#ifndef BC_CLI_CLIENT_STATUS_MODEL_H
#define BC_CLI_CLIENT_STATUS_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Kinds of faults of the board: stalls, overflows, errors, time-outs, silences, restarts. */
#define BC_STATUS_FAULTS 6u

struct bc_status {
	char version[32];
	char state[32];
	char mode[32];
	double uptime_s;
	uint64_t clients;
	uint64_t event_streams;
	uint64_t record_streams;
	struct {
		char kind[32];
		char name[256];
		uint64_t clock_hz; /* 0: not known */
	} source;
	struct {
		bool is_there; /* the source has one, plugged in or not */
		char state[32];
		char id[32];
		char serial[160];
		char product[160];
		char port[32];
		char speed[32];
		char firmware[32];
		uint64_t unplugs;
		uint64_t faults[BC_STATUS_FAULTS];
		char last_error[256];
	} board;
	struct {
		bool is_there;
		char id[160];
		char label[160];
		char path[1024];
		char started[40];
		double started_s; /* of Unix time; 0: not known */
		uint64_t segment;
		uint64_t records;
		uint64_t bytes;
		char notes[4096]; /* "key=value", a line each */
	} recording;
	struct {
		bool is_there;
		double seconds;
		double limit_seconds; /* 0: none */
		uint64_t records;
		uint64_t bytes;
		uint64_t limit_bytes; /* 0: none */
	} flight;
	char replay[1024]; /* path of the file, empty: none */
	struct {
		uint64_t received;
		uint64_t written;
		uint64_t buffer; /* dropped */
		uint64_t disk;   /* dropped */
		uint64_t board;  /* lost */
		uint64_t filtered;
		uint64_t invalid;
		uint64_t idle;
		uint64_t skipped_bytes;
		uint64_t raw_dropped_bytes;
		uint64_t gaps;
	} counts;
	struct {
		double samples;
		double bytes_in;
		double bytes_out;
	} rates; /* per second */
	struct {
		uint64_t chunks;
		uint64_t free;
		uint64_t low_water;
	} buffer;
	struct {
		uint64_t free_bytes;
		double hours_left; /* less than 0: not filling up */
		char last_error[256];
	} disk;
	uint64_t triggers; /* armed */
	struct {
		uint64_t segments;
		uint64_t waiting; /* commands */
		uint64_t failed;
		uint64_t manifest_failed;
	} sealed;
};

/* Returns false, with the status all zero, when the object isn't a status. */
bool bc_status_parse(struct bc_status *status, const json_t *object);

/* The samples that are lost: what makes a gap. */
static inline uint64_t bc_status_lost(const struct bc_status *status)
{
	return status->counts.buffer + status->counts.disk + status->counts.board;
}

/* The share of the buffer that is in use, 0 to 1. */
static inline double bc_status_in_use(const struct bc_status *status)
{
	uint64_t chunks = status->buffer.chunks;
	uint64_t free = status->buffer.free;

	return free < chunks ? (double)(chunks - free) / (double)chunks : 0;
}

#endif
