/* The daemon's status (docs/api.md, /v1/status) as a struct, for `buscap status` and `buscap top`.
 * Members that are missing or of another type become 0, empty or false. Texts are escaped. */
#ifndef BC_CLI_CLIENT_STATUS_MODEL_H
#define BC_CLI_CLIENT_STATUS_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/bus/chunk.h"

/* Board faults: stalls, overflows, errors, timeouts, silences, restarts. */
#define BC_STATUS_FAULTS 6u

struct bc_status_model {
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
		uint64_t clock_hz; /* 0: unknown */
	} source;
	struct {
		bool is_present; /* the source uses a board, plugged in or not */
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
		bool is_present;
		char id[160];
		char label[160];
		char path[1024];
		char started[40];
		double started_s; /* Unix time; 0: unknown */
		uint64_t segment;
		uint64_t records;
		uint64_t bytes;
		char notes[4096]; /* "key=value" lines */
	} recording;
	struct {
		bool is_present;
		double seconds;
		double limit_seconds; /* 0: none */
		uint64_t records;
		uint64_t bytes;
		uint64_t limit_bytes; /* 0: none */
	} flight;
	struct {
		uint64_t received;
		uint64_t lost[BC_GAP_CAUSES];
		uint64_t filtered;
		uint64_t invalid;
		uint64_t idle;
		uint64_t skipped_bytes;
		uint64_t deleted_records;
		uint64_t gaps;
		uint64_t inexact_gaps;
	} counts;
	struct {
		double samples;
		double bytes_in;
		double bytes_out;
	} rates; /* per second */
	struct {
		uint64_t chunks;
		uint64_t free;
		uint64_t min_free;
	} buffer;
	struct {
		bool is_free_unknown;
		uint64_t free_bytes;
		bool has_ring;
		uint64_t ring_bytes;
		uint64_t ring_limit_bytes; /* 0: not known */
		uint64_t ring_segments;
		uint64_t ring_limit_segments; /* 0: none */
		double seconds_left;          /* negative: not being filled */
		bool is_stuck;
		char last_error[256];       /* "FILE: WHAT: WHY" */
		char last_error_cause[256]; /* "WHAT: WHY" */
	} disk;
	uint64_t triggers; /* armed */
	uint64_t dropped_log_lines;
	struct {
		uint64_t segments;
		uint64_t waiting; /* commands */
		uint64_t failed;
	} sealed;
};

/* If the object is not a status, zeroes *status and returns false. */
bool bc_status_model_parse(struct bc_status_model *status, const json_t *object);

/* Returns the number of lost samples. Each loss leaves a gap. */
static inline uint64_t bc_status_model_lost(const struct bc_status_model *status)
{
	uint64_t lost = 0;

	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		lost += status->counts.lost[cause];
	return lost;
}

/* Returns the share of the buffer that is in use, 0 to 1. */
static inline double bc_status_model_in_use(const struct bc_status_model *status)
{
	uint64_t chunks = status->buffer.chunks;
	uint64_t free = status->buffer.free;

	return free < chunks ? (double)(chunks - free) / (double)chunks : 0;
}

#endif
