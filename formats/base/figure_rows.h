/* One row for each member of the status, in the order of its JSON. See formats/base/figures.h.
 * Where a value comes from: `s` is the status (daemon/recorder/status.h), `c` its counts since the
 * start (daemon/ingest/counts.h), `w` the writer's statistics (daemon/store/writer_report.h), `b`
 * the board (capture/usb/board.h), `r` the recording that is shown, `f` the flight recorder. */
FIGURE("version", TEXT, BC_VERSION, "build_info", "Version of buscapd.", LABEL("version"))
FIGURE("state", TEXT, s->state, "state", "State of the daemon.",
	STATES("idle waiting recording replaying draining failed"))
FIGURE("mode", TEXT, s->mode, "mode", "Recording mode.", STATES("always on-demand flight"))
FIGURE("source", OBJECT, true, "source_info", "Source of the samples.")
FIGURE("source.kind", TEXT, s->source_kind, "source_info", "`usb`, `file` or `sim`.", LABEL("kind"))
FIGURE("source.name", TEXT, s->source_name, "source_info", "Its name.", LABEL("name"))
FIGURE("source.clock_hz", COUNT_OR_NULL, count_if(s->clock_hz != 0, s->clock_hz),
	"source_clock_hertz", "Bus clock.")
FIGURE("source.board", OBJECT_OR_NULL, s->board != NULL, "board_info",
	"The board, or the last one.")
FIGURE("source.board.state", TEXT, bc_board_state_name(b->state), "board_state",
	"State of the board.", STATES("detached opening streaming stopping back-off"))
FIGURE("source.board.id", PLUGGED_TEXT, board_id, "board_info", "VID:PID.", LABEL("id"))
FIGURE("source.board.serial", PLUGGED_TEXT_OR_NULL, b->identity.serial, "board_info",
	"Serial number of its USB descriptor.", LABEL("serial"))
FIGURE("source.board.product", PLUGGED_TEXT_OR_NULL, b->identity.product, "board_info",
	"Product name of its USB descriptor.", LABEL("product"))
FIGURE("source.board.port", PLUGGED_TEXT, b->identity.port, "board_info",
	"Its USB port, as in sysfs.", LABEL("port"))
FIGURE("source.board.address", PLUGGED_COUNT, b->identity.address, "board_info", "Its USB address.",
	LABEL("address"))
FIGURE("source.board.speed", PLUGGED_TEXT, b->identity.speed, "board_info", "Its USB speed.",
	LABEL("speed"))
FIGURE("source.board.endpoint", PLUGGED_COUNT, b->identity.endpoint, "board_info",
	"The endpoint of its stream.", LABEL("endpoint"))
FIGURE("source.board.packet_bytes", PLUGGED_COUNT, b->identity.packet_bytes, "board_packet_bytes",
	"Maximum packet size of the endpoint.")
FIGURE("source.board.transfers", PLUGGED_COUNT, b->transfers, "board_transfers",
	"Transfers kept in flight.")
FIGURE("source.board.transfer_bytes", PLUGGED_COUNT, b->transfer_bytes, "board_transfer_bytes",
	"Size of a transfer.")
FIGURE("source.board.info", PLUGGED_OBJECT_OR_NULL, b->has_info, NULL,
	"The board's description of itself.")
FIGURE("source.board.info.firmware", TEXT, b->firmware, "board_info", "Version of its firmware.",
	LABEL("firmware"))
FIGURE("source.board.info.serial", TEXT, b->own_serial, "board_info", "Serial number.",
	LABEL("own_serial"))
FIGURE("source.board.info.protocol_version", COUNT, b->protocol_version, "board_info",
	"Version of its [protocol](board-protocol.md).", LABEL("protocol_version"))
FIGURE("source.board.info.clock_hz", COUNT, b->clock_hz, "board_clock_hertz",
	"Bus clock reported by the board.")
FIGURE("source.board.info.features", COUNT, b->features, "board_info", "Bits of its features.",
	LABEL("features"))
FIGURE("source.board.info.fifo_samples", COUNT, b->fifo_samples, "board_fifo_samples",
	"FIFO size reported by the board.")
FIGURE("source.board.counters", OBJECT_OR_NULL, b->has_counters, NULL,
	"The board's own counts, as last read.")
FIGURE("source.board.counters.samples", COUNT, b->counters.samples, "board_counted_samples",
	"Samples counted by the board, as last read.")
FIGURE("source.board.counters.lost_samples", COUNT, b->counters.lost, "board_counted_lost_samples",
	"Lost samples counted by the board, as last read.")
FIGURE("source.board.counters.fifo_peak_samples", COUNT, b->counters.fifo_high,
	"board_fifo_peak_samples", "Highest FIFO level reported by the board, as last read.")
FIGURE("source.board.received_bytes", COUNT, b->bytes, "board_received_bytes_total",
	"Bytes received from boards.")
FIGURE("source.board.plugs", COUNT, b->plugs, "board_plugs_total",
	"Times a board started streaming.")
FIGURE("source.board.unplugs", COUNT, b->unplugs, "board_unplugs_total",
	"Times a board was unplugged.", SHOWN(BOARD, WARN, "unplug", ""))
FIGURE("source.board.stalls", COUNT, b->stalls, "board_stalls_total", "Transfers that stalled.",
	SHOWN(BOARD, WARN, "stall", ""))
FIGURE("source.board.overflows", COUNT, b->overflows, "board_overflows_total",
	"Transfers that overflowed.", SHOWN(BOARD, WARN, "overflow", ""))
FIGURE("source.board.errors", COUNT, b->errors, "board_errors_total",
	"Transfers that failed in another way.", SHOWN(BOARD, WARN, "error", ""))
FIGURE("source.board.timeouts", COUNT, b->timeouts, "board_timeouts_total",
	"Transfers that timed out.", SHOWN(BOARD, WARN, "timeout", ""))
FIGURE("source.board.silences", COUNT, b->silences, "board_silences_total",
	"Times a board sent no data for too long.", SHOWN(BOARD, WARN, "silence", ""))
FIGURE("source.board.restarts", COUNT, b->restarts, "board_restarts_total",
	"Times a board was reset and reopened.", SHOWN(BOARD, WARN, "restart", ""))
FIGURE("source.board.last_error", TEXT_OR_NULL, b->last_error, "board_error_info",
	"Last error of the board.", LABEL("error"))
FIGURE("directory", TEXT, s->dir, NULL, "Where recordings are written, an absolute path.")
FIGURE("recording", OBJECT_OR_NULL, s->recording != NULL, "recording_info",
	"The current recording.")
FIGURE("recording.id", TEXT, r->header.recording, "recording_info", "Its id.", LABEL("id"))
FIGURE("recording.label", TEXT_OR_NULL, r->header.label, "recording_info", "Its label.",
	LABEL("label"))
FIGURE("recording.started", TIME, r->started_ns, "recording_start_time_seconds",
	"Start of the recording, Unix time.")
FIGURE("recording.segment", COUNT_OR_NULL, count_if(progress.path[0] != '\0', progress.segment),
	"recording_segment", "Number of the newest segment.")
FIGURE("recording.path", TEXT_OR_NULL, progress.path, NULL, "Path of the newest segment.")
FIGURE("recording.records", COUNT, progress.records, "recording_records",
	"Records written by the recording.")
FIGURE("recording.bytes", COUNT, progress.bytes, "recording_bytes",
	"Bytes on disk of the recording.")
FIGURE("recording.metadata", TEXTS, bc_metadata_parse(r->header.metadata),
	"recording_metadata_info", "User-defined metadata of the recording.", LABEL("key"))
FIGURE("flight", OBJECT_OR_NULL, s->has_flight, NULL, "The flight recorder.")
FIGURE("flight.seconds", SECONDS, tenths(f->seconds), "flight_seconds",
	"Time held by the flight recorder.")
FIGURE("flight.bytes", COUNT, f->bytes, "flight_bytes",
	"Bytes of records held by the flight recorder.")
FIGURE("flight.records", COUNT, f->records, "flight_records",
	"Records held by the flight recorder.")
FIGURE("flight.chunks", COUNT, f->chunks, "flight_chunks", "Chunks held by the flight recorder.")
FIGURE("flight.limit_seconds", SECONDS, f->limit_seconds, "flight_limit_seconds",
	"Time limit of the flight recorder; 0 if none.")
FIGURE("flight.limit_bytes", COUNT, f->limit_bytes, "flight_limit_bytes",
	"Byte limit of the flight recorder; 0 if none.")
FIGURE("counts", OBJECT, true, NULL, "Counts since the daemon started.")
FIGURE("counts.received", COUNT, c->received, "received_samples_total",
	"Samples received in valid frames.")
FIGURE("counts.written", COUNT, c->written, "written_samples_total", "Samples written to files.")
FIGURE("counts.durable", COUNT, c->durable, "durable_samples_total",
	"Samples written and synced to disk.")
FIGURE("counts.in_flight", COUNT, c->in_flight, "in_flight_samples", "Samples not written yet.")
FIGURE("counts.dropped", COUNTS, dropped_json(c), "dropped_samples_total",
	"Samples not written, by reason.", LABEL("reason"))
FIGURE("counts.lost", COUNTS, lost_json(&c->losses), "lost_samples_total",
	"Samples lost, by cause.", LABEL("cause"))
FIGURE("counts.gaps", COUNT, lost.gaps, "gaps_total", "Gaps recorded.",
	SHOWN(LOST, WARN, "gap", ""))
FIGURE("counts.inexact_gaps", COUNT, lost.inexact, "inexact_gaps_total",
	"Gaps in which an unknown number of samples, or more than counted, were lost.")
FIGURE("counts.away_seconds", SECONDS, (double)lost.away_ns * 1e-9, "away_seconds_total",
	"How long nothing was recorded: the durations of the gaps.")
FIGURE("counts.skipped_bytes", COUNT, c->skipped_bytes, "skipped_bytes_total",
	"Bytes outside valid frames.")
FIGURE("counts.damaged_places", COUNT, s->damages, "damaged_places_total",
	"Places where the source could not be read.")
FIGURE("counts.unknown_special_cycles", COUNT, c->unknown_special, "unknown_special_cycles_total",
	"Special cycles of unknown kind.")
FIGURE("counts.deleted_records", COUNT, c->deleted_records, "deleted_records_total",
	"Records written to segments that were deleted while open.",
	SHOWN(LOST, BAD, "record", " in deleted files"))
FIGURE("rates", OBJECT, true, NULL, "Rates over the last second.")
FIGURE("rates.samples_per_second", COUNT_OR_NULL, rate_json(s, s->rates.samples_per_s),
	"samples_per_second", "Samples received per second, over the last second.")
FIGURE("rates.record_bytes_per_second", COUNT_OR_NULL, rate_json(s, s->rates.bytes_in_per_s),
	"record_bytes_per_second", "Bytes of records per second, before compression.")
FIGURE("rates.written_bytes_per_second", COUNT_OR_NULL, rate_json(s, s->rates.bytes_out_per_s),
	"written_bytes_per_second", "Bytes written to disk per second.")
FIGURE("buffer", OBJECT, true, NULL, "The pool of chunks.")
FIGURE("buffer.chunks", COUNT, s->buffer.chunks, "buffer_chunks", "Chunks in the buffer.")
FIGURE("buffer.free_chunks", COUNT, s->buffer.free, "buffer_free_chunks",
	"Free chunks in the buffer.")
FIGURE("buffer.min_free_chunks", COUNT, s->buffer.min_free, "buffer_min_free_chunks",
	"Lowest number of free chunks so far.")
FIGURE("buffer.time_left_seconds", SECONDS_OR_NULL, buffer_left_json(s), "buffer_time_left_seconds",
	"Time until the buffer is full if the disk accepts nothing.")
FIGURE("disk", OBJECT, true, NULL, "The output directory and its file system.")
FIGURE("disk.free_bytes", COUNT_OR_NULL, count_if(w->is_free_known, w->free_bytes),
	"disk_free_bytes", "Free space on the file system.")
FIGURE("disk.ring", OBJECT_OR_NULL, space.has_ring, NULL,
	"All segments, if a rule deletes old ones.")
FIGURE("disk.ring.bytes", COUNT_OR_NULL, count_if(w->is_checked, w->used_bytes), "ring_bytes",
	"Size of all segments.")
FIGURE("disk.ring.limit_bytes", COUNT_OR_NULL, count_if(space.limit_bytes != 0, space.limit_bytes),
	"ring_limit_bytes", "Size at which the rules delete old segments.")
FIGURE("disk.ring.segments", COUNT_OR_NULL, count_if(w->is_checked, w->segments), "ring_segments",
	"Segments in the directory.")
FIGURE("disk.ring.limit_segments", COUNT_OR_NULL,
	count_if(space.limit_segments != 0, space.limit_segments), "ring_limit_segments",
	"Number of segments at which the rules delete old ones.")
FIGURE("disk.time_left_seconds", COUNT_OR_NULL,
	count_if(space.seconds_left != UINT64_MAX, space.seconds_left), "disk_time_left_seconds",
	"Time until the disk is full at the rate of the last minute.")
FIGURE("disk.stuck", FLAG, w->is_stuck || s->busy[0] != '\0', "disk_stuck",
	"True (1) while chunks cannot be written, or a thread has been in one call for 5 s.")
FIGURE("disk.last_sync_seconds", SECONDS_OR_NULL, call_json(w->last_sync_ns),
	"disk_last_sync_seconds", "How long the last sync took, or the sealing of a segment.")
FIGURE("disk.longest_sync_seconds", SECONDS_OR_NULL, call_json(w->longest_sync_ns),
	"disk_longest_sync_seconds", "How long the longest one took since the daemon started.")
FIGURE("disk.last_error", TEXT_OR_NULL, disk_error(s), "disk_error_info",
	"Last error of the disk, or the call that takes long.", LABEL("error"))
FIGURE("disk.last_error_cause", TEXT_OR_NULL,
	disk_error(s) + (disk_error(s) == w->error ? w->error_cause : 0), NULL,
	"The end of `last_error`, without the file.")
FIGURE("sealed", OBJECT, true, NULL, "Sealed segments and their commands.")
FIGURE("sealed.segments", COUNT, w->sealed, "sealed_segments_total", "Segments sealed.",
	SHOWN(DAEMON, PLAIN, "segment", " sealed"))
FIGURE("sealed.commands_waiting", COUNT, s->commands_waiting, "sealed_commands_waiting",
	"Commands for sealed segments that are waiting.",
	SHOWN(DAEMON, PLAIN, "command", " waiting"))
FIGURE("sealed.commands_failed", COUNT, s->commands_failed, "sealed_commands_failed_total",
	"Commands for sealed segments that failed.", SHOWN(DAEMON, BAD, "command", " failed"))
FIGURE("triggers", COUNT, s->triggers, "triggers", "Armed triggers.",
	SHOWN(DAEMON, PLAIN, "trigger", " armed"))
FIGURE("clients", COUNT, s->clients, "clients", "Connections to the socket.")
FIGURE("streams", COUNTS, streams_json(s), "streams", "Clients reading a stream, by stream.",
	LABEL("stream"))
FIGURE("dropped_log_lines", COUNT, s->dropped_log_lines, "dropped_log_lines_total",
	"Log lines dropped because standard error was not read or failed.",
	SHOWN(DAEMON, WARN, "log line", " dropped"))
FIGURE("uptime_seconds", SECONDS, tenths(s->uptime_s), "uptime_seconds",
	"Time since the daemon started.")
