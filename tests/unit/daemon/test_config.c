#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config/config_keys.h"
#include "daemon/config/config_load.h"
#include "daemon/config/options.h"
#include "daemon/ingest/pipeline.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

struct fixture {
	struct temp_dir dir;
	char file[128];
	char err[4096]; /* one line per error */
	struct bc_config config;
};

static void set_defaults(struct fixture *f)
{
	memset(&f->config, 0, sizeof(f->config));
	bc_config_default(&f->config);
}

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	snprintf(f->file, sizeof(f->file), "%s/buscapd.conf", f->dir.path);
	set_defaults(f);
}

static void tear_down(struct fixture *f)
{
	bc_name_map_close(f->config.names);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void write_file(const struct fixture *f, const char *name, const char *text)
{
	temp_write(&f->dir, name, text, strlen(text));
}

static void on_error(void *context, const char *text)
{
	struct fixture *f = context;
	size_t used = strlen(f->err);

	snprintf(f->err + used, sizeof(f->err) - used, "%s\n", text);
}

static bool load_from(struct fixture *f, const char *path, bool is_optional)
{
	struct bc_config_errors errors = {.context = f, .on_error = on_error};

	f->err[0] = '\0';
	bc_config_load(&f->config, path, is_optional, &errors);
	return errors.count == 0;
}

static bool load(struct fixture *f)
{
	return load_from(f, f->file, false);
}

static bool check(struct fixture *f)
{
	struct bc_config_errors errors = {.context = f, .on_error = on_error};

	f->err[0] = '\0';
	return bc_config_check(&f->config, &errors);
}

static void set(struct fixture *f, const char *section, const char *key, const char *value)
{
	if (!bc_config_set(&f->config, section, key, value, f->err, sizeof(f->err)))
		fail_msg("%s", f->err);
}

TEST_F(every_section_is_parsed)
{
	const struct bc_config *c = &f->config;

	write_file(f, "buscapd.conf",
		"; a comment\n# another\n[source]\nsource = file:trace,format=byu\nspeed = "
		"realtime\n"
		"[usb]\nserial = A1\ntransfers = 4\n"
		"[output]\ndir = /tmp/x ; a comment\nlabel = boot-1\nsealed_command = "
		"/bin/true\n"
		"sealed_timeout = 90s\n"
		"[recording]\nrecord = always\nflight_time = 3m\nflight_size = 5M\nsampling = "
		"10ms/1s\nmetadata.test = boot \"cold\"\nmetadata.who = me\n"
		"[filter]\nkeep = type=read,write\nkeep.vga = addr=a0000-bffff\nleave_out = "
		"proc=3\n"
		"[trigger roi]\nwhen = port=e0\naction = mark\ntext = here\nholdoff = 1ms\n"
		"[trigger end]\nwhen = idle 5s\naction = stop\npost = 16K\n"
		"[rotation]\nfilesize = 5M\nduration = 60\ninterval = 1h\nfiles = 7\n"
		"[stop]\nduration = 2\nrecords = 3\nfilesize = 4\n"
		"[space]\nmax_use = 10G\nkeep_free = 1G\nmax_age = 30d\n"
		"[pipeline]\nbuffer = 32M\nworkers = 3\nflush = 100ms\nsync = 1\n"
		"[mapping]\ninvalid = keep\nsize = v1.0\nattr.D_WRITE = 7\nattr.INT_ACK = 255\n"
		"[socket]\npath = /tmp/s\ngroup = users\nconnections = 9\nreserve = record, mark\n"
		"metrics_listen = 127.0.0.1:9180\n[log]\nlevel = debug\n");
	assert_true(load(f));
	assert_int_equal(c->source.kind, BC_SOURCE_FILE);
	assert_string_equal(c->source.path, "trace");
	assert_true(c->speed > 0.99 && c->speed < 1.01);
	assert_string_equal(c->usb.match.serial, "A1");
	assert_int_equal(c->usb.transfers, 4);
	assert_string_equal(c->dir, "/tmp/x");
	assert_string_equal(c->label, "boot-1");
	assert_string_equal(c->sealed_command, "/bin/true");
	assert_true(c->sealed_timeout_ns == UINT64_C(90000000000));
	assert_int_equal(c->recording.mode, BC_RECORD_ALWAYS);
	assert_true(c->recording.flight_ns == UINT64_C(180000000000));
	assert_int_equal(c->recording.flight_bytes, 5000000);
	assert_string_equal(
		c->recording.metadata, "{\"test\":\"boot \\\"cold\\\"\",\"who\":\"me\"}");
	assert_int_equal(c->filter.sampling.width_ns, 10000000);
	assert_int_equal(c->filter.keep.count, 2);
	assert_string_equal(c->filter.keep.rules[1].where, "addr=a0000-bffff");
	assert_int_equal(c->filter.leave_out.count, 1);
	assert_int_equal(c->triggers_count, 2);
	assert_string_equal(c->triggers[0].name, "roi");
	assert_int_equal(c->triggers[0].kind, BC_TRIGGER_RECORD);
	assert_int_equal(c->triggers[0].action, BC_ACTION_MARK);
	assert_string_equal(c->triggers[0].text, "here");
	assert_int_equal(c->triggers[0].holdoff_ns, 1000000);
	assert_int_equal(c->triggers[1].kind, BC_TRIGGER_IDLE);
	assert_true(c->triggers[1].idle_ns == UINT64_C(5000000000));
	assert_int_equal(c->triggers[1].post.unit, BC_TIME_OR_SIZE_BYTES);
	assert_int_equal(c->triggers[1].post.value, 16000);
	assert_int_equal(c->rotation.file_bytes, 5000000);
	assert_int_equal(c->rotation.files, 7);
	assert_int_equal(c->stop.records, 3);
	assert_int_equal(c->stop.file_bytes, 4);
	assert_true(c->space.max_use_bytes == UINT64_C(10000000000));
	assert_true(c->space.keep_free_bytes == 1000000000);
	assert_true(c->space.max_age_ns == UINT64_C(2592000000000000));
	assert_int_equal(c->buffer_bytes, 32000000);
	assert_int_equal(c->workers, 3);
	assert_int_equal(c->flush_ns, 100000000);
	assert_int_equal(c->sync_ns, 1000000000);
	assert_true(c->mapping.keep_invalid && c->mapping.size_v1_0);
	assert_int_equal(c->mapping.attr[BC_CYCLE_D_WRITE], 7);
	assert_int_equal(c->mapping.attr[BC_CYCLE_INT_ACK], 255);
	assert_int_equal(c->mapping.attr[BC_CYCLE_I_FETCH], 3);
	assert_string_equal(c->socket, "/tmp/s");
	assert_string_equal(c->socket_group, "users");
	assert_int_equal(c->connections, 9);
	assert_int_equal(c->reserve,
		bc_permission_bit(BC_PERMISSION_RECORD) | bc_permission_bit(BC_PERMISSION_MARK));
	assert_string_equal(c->metrics_listen, "127.0.0.1:9180");
	assert_int_equal(c->log_level, BC_LOG_DEBUG);
	assert_true(check(f));
}

TEST_F(settings_of_the_source_override_the_usb_section)
{
	write_file(f, "buscapd.conf",
		"[source]\nsource = usb:serial=B2,wait=1\n[usb]\nserial = A1\ntransfers = 4\n");
	assert_true(load(f));
	struct bc_usb_options usb = bc_config_usb(&f->config);
	assert_string_equal(usb.match.serial, "B2");
	assert_int_equal(usb.transfers, 4);
	assert_int_equal(usb.wait_ns, 1000000000);
	/* Another source replaces these settings, too. */
	assert_true(bc_config_set(
		&f->config, "source", "source", "usb:id=1234:5678", f->err, sizeof(f->err)));
	usb = bc_config_usb(&f->config);
	assert_string_equal(usb.match.serial, "A1");
	assert_int_equal(usb.match.vid, 0x1234);
}

TEST_F(wrong_settings_of_a_board_in_a_source_are_rejected)
{
	static const struct {
		const char *text;
		const char *part;
	} bad[] = {
		{"serial", "KEY=VALUE"},
		{"colour=red", "colour: no such key in [usb]"},
		{"id=1209:0001:2", "VID:PID"},
		{"port=1-2.3.4.5.6.7.8.9", "must be a port"},
		{"transfers=257", "1 to 256"},
		{"ftdi_mode=slow", "sync-fifo"},
	};
	char source[64];

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		snprintf(source, sizeof(source), "usb:%s", bad[i].text);
		if (bc_config_set(&f->config, "source", "source", source, f->err, sizeof(f->err)))
			fail_msg("'%s' was accepted", source);
		if (strstr(f->err, bad[i].part) == NULL)
			fail_msg("'%s': '%s'", source, f->err);
		assert_int_equal(f->config.source.kind, BC_SOURCE_NONE);
	}
}

TEST_F(conf_d_is_read_in_order_and_later_wins)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/conf.d", f->dir.path);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file(f, "buscapd.conf", "[pipeline]\nworkers = 1\nflush = 5\n");
	write_file(f, "conf.d/20.conf", "[pipeline]\nworkers = 20\n");
	write_file(f, "conf.d/10.conf", "[pipeline]\nworkers = 10\nsync = 9\n");
	write_file(f, "conf.d/30.off", "[pipeline]\nworkers = 30\n");
	assert_true(load(f));
	assert_int_equal(f->config.workers, 20);
	assert_int_equal(f->config.sync_ns, UINT64_C(9000000000));
	assert_int_equal(f->config.flush_ns, UINT64_C(5000000000));
	write_file(f, "conf.d/20.conf", "[pipeline]\n\nworkers = 0\n");
	assert_false(load(f));
	assert_non_null(strstr(f->err, "conf.d/20.conf:3:"));
	for (const char *const *name =
			(const char *const[]){"10.conf", "20.conf", "30.off", "", NULL};
		*name != NULL; name++) {
		snprintf(path, sizeof(path), "%s/conf.d/%s", f->dir.path, *name);
		assert_int_equal(remove(path), 0);
	}
}

TEST_F(an_error_names_file_and_line)
{
	static const struct {
		const char *text;
		const char *part;
	} bad[] = {
		{"[socket]\nconnections = 0\n", ":2: connections = 0: must be a number"},
		{"[socket]\nconnections = 4097\n", "from 1 to 4096"},
		{"[socket]\nreserve = record,stop\n",
			":2: reserve = record,stop: stop: unknown operation; use"},
		{"[socket]\nmetrics_listen = 10.0.0.1:80\n", "metrics_listen = 10.0.0.1:80: "},
		{"[pipeline]\nbufer = 1M\n",
			":2: bufer = 1M: no such key in [pipeline]; did you mean buffer?"},
		{"[pipe]\nbuffer = 1M\n", ":1: [pipe]: no such section; did you mean [pipeline]?"},
		{"[colours]\n", ":1: [colours]: no such section; see buscapd --list-settings"},
		{"buffer = 1M\n", ":1: buffer = 1M: key outside of a [section]"},
		{"[log]\n\nlevel = loud\n", ":3: level = loud"},
		{"[log]\nlevel = 9\n", ":2: level = 9"},
		{"[source]\nsource = sim:rate=x\n", ":2: source = sim:rate=x"},
		{"[usb]\nid = 1209\n", ":2: id = 1209: must be VID:PID"},
		{"[usb]\nid = 1209:00012\n", "VID:PID"},
		{"[usb]\nport = 1.2\n", "must be a port"},
		{"[usb]\nprotocol = byu\n", "bcp1 or raw6"},
		{"[usb]\nlink = serial\n", "plain or ftdi"},
		{"[usb]\ntransfers = 0\n", "1 to 256"},
		{"[usb]\ntransfers = 257\n", "1 to 256"},
		{"[usb]\ntransfer_size = 1K\n", "4KiB to 16MiB"},
		{"[usb]\ntransfer_size = 17MiB\n", "4KiB to 16MiB"},
		{"[usb]\ntransfer_timeout = soon\n", "not a time"},
		{"[usb]\ntransfer_timeout = 2h\n", "1h"},
		{"[usb]\nclock_hz = fast\n", "decimal number"},
		{"[usb]\nwait = -1\n", "a time"},
		{"[usb]\nsilence = x\n", "a time"},
		{"[usb]\nsilence_action = shout\n", "warn or restart"},
		{"[usb]\nback_off = 0\n", "1ms"},
		{"[usb]\nback_off_max = 1us\n", "1ms"},
		{"[usb]\nftdi_latency = 256ms\n", "255ms"},
		{"[usb]\nftdi_mode = slow\n", "sync-fifo or fifo"},
		{"[usb]\ncolour = red\n", ":2: colour = red: no such key in [usb]"},
		{"[space]\nmax_use = lots\n", ":2: max_use = lots"},
		{"[rotation]\nfiles = 0\n", ":2: files = 0"},
		{"[rotation]\nfilesize = 1X\n", ":2: filesize = 1X: unknown unit X; use KB, MB"},
		{"[rotation]\nfilesize =\n", ":2: filesize = : not a size"},
		{"[rotation]\nfilesize = 0\n", ":2: filesize = 0: must be a size"},
		{"[rotation]\nduration = 0\n", ":2: duration = 0: must be a time above 0"},
		{"[rotation]\nfiles = 1KB\n", ":2: files = 1KB: unknown unit KB"},
		{"[rotation]\nrecords = 1\n", ": no such key in [rotation]; did you mean [stop]?"},
		{"[stop]\nrecords = 1MB\n", ":2: records = 1MB: unknown unit MB"},
		{"[stop]\nduration = x\n", ":2: duration = x: not a time"},
		{"[stop]\nfiles = 1\n", ": no such key in [stop]"},
		{"[output]\nlabel = a/b\n", ":2: label = a/b"},
		{"[output]\nsealed_command = cp\n", ":2: sealed_command = cp: must be "},
		{"[output]\nsealed_timeout = soon\n", ":2: sealed_timeout = soon: not a time"},
		{"[output]\ndir =\n", ":2: dir = "},
		{"[output]\ndir = ~/traces\n", ":2: dir = ~/traces: ~ is not expanded"},
		{"[output]\ndir = ~\n", ":2: dir = ~: ~ is not expanded"},
		{"[socket]\npath = ~/s\n", ":2: path = ~/s: ~ is not expanded"},
		{"[source]\nsource = file:~/a\n", "~ is not expanded"},
		{"[source]\nsource = disk\n", ":2: source = disk"},
		{"[source]\nspeed = -1\n", ":2: speed = -1"},
		{"[mapping]\nattr.NOPE = 1\n", ":2: attr.NOPE = 1: unknown cycle"},
		{"[mapping]\nattr.D_READ = 256\n", ":2: attr.D_READ = 256: must be"},
		{"[mapping]\ninvalid = maybe\n", ":2: invalid = maybe"},
		{"[mapping]\nsize = v2\n", ":2: size = v2"},
		{"[pipeline]\nflush = 0\n", ":2: flush = 0: must be a time of at least 1ms"},
		{"[pipeline]\nworkers = 65\n", ":2: workers = 65"},
		{"[recording]\nrecord = never\n", ":2: record = never: must be"},
		{"[recording]\nflight_time = long\n", ":2: flight_time = long"},
		{"[recording]\nflight_size = much\n", ":2: flight_size = much"},
		{"[recording]\nsampling = 1s/10ms\n", ":2: sampling = 1s/10ms"},
		{"[recording]\nmetadata. = x\n", ":2: metadata. = x: the key must have"},
		{"[recording]\nmetadata.a = \xff\n", ": must be UTF-8"},
		{"[recording]\nmetadata = x\n", ":2: metadata = x: no such key"},
		{"[filter]\nkeep = all\n", ":2: keep = all: not a condition; try addr="},
		{"[filter]\nkeep.a b = proc=1\n", ":2: keep.a b = proc=1: the name must"},
		{"[filter]\ndrop = proc=1\n", ":2: drop = proc=1: no such key in [filter]"},
		{"[trigger]\nwhen = gap\n", ":1: [trigger]: no such section"},
		{"[trigger a.b]\nwhen = gap\n", ":1: [trigger a.b]: the name must"},
		{"[trigger x]\nwhen = now\n", ":2: when = now: not a condition; try addr="},
		{"[trigger x]\nwhen = idle\n", ":2: when = idle: idle needs"},
		{"[trigger x]\nwhen = idle 0\n", ":2: when = idle 0: idle needs"},
		{"[trigger x]\nwhen = idle 5 sec\n",
			":2: when = idle 5 sec: unknown unit sec; use ns, us"},
		{"[trigger x]\naction = beep\n", ":2: action = beep: must be start"},
		{"[trigger x]\npre = much\n", ":2: pre = much: "},
		{"[trigger x]\npost = all\n", ":2: post = all: must be"},
		{"[trigger x]\ntext = \xc3(\n", ":2: text = "},
		{"[trigger x]\nholdoff = x\n", ":2: holdoff = x"},
		{"[trigger x]\nwhy = x\n", ":2: why = x: no such key"},
		{"[pipeline\n", ":1: expected [section]"},
		{"[pipeline]\nnonsense\n", ":2: expected [section]"},
		{"[pipeline]\n workers = 1\n", ":2: indented line"},
		{"[pipeline]\nworkers = 1\nworkers = x\nworkers = y\n", ":3: workers = x"},
	};

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		write_file(f, "buscapd.conf", bad[i].text);
		if (load(f))
			fail_msg("'%s' was accepted", bad[i].text);
		if (strstr(f->err, bad[i].part) == NULL || strstr(f->err, f->file) != f->err)
			fail_msg("'%s': '%s'", bad[i].text, f->err);
	}
}

TEST_F(a_long_value_is_limited)
{
	char text[200];

	snprintf(text, sizeof(text), "[usb]\nserial = %0128d\n", 1);
	write_file(f, "buscapd.conf", text);
	assert_false(load(f));
	assert_non_null(strstr(f->err, "127"));
	snprintf(text, sizeof(text), "[output]\nlabel = %065d\n", 1);
	write_file(f, "buscapd.conf", text);
	assert_false(load(f));
	assert_non_null(strstr(f->err, ":2: label = "));
}

TEST_F(all_errors_are_reported_with_their_lines)
{
	static const char *const parts[] = {":1: buffer = 1M: key outside",
		":2: [pipe]: no such section", ":6: flush = soon: ", ":7: expected [section]",
		":8: indented line", ":9: line too long",
		":10: workers = 0: ", ":12: level = loud: "};
	char text[1024];
	unsigned lines = 0;

	snprintf(text, sizeof(text),
		"buffer = 1M\n[pipe]\nbuffer = x\n; a comment\n[pipeline]\nflush = soon\n"
		"nonsense ; key = value\n sync = 1\nstuck = %0300d\nworkers = 0\n[log]\n"
		"level = loud\n",
		1);
	write_file(f, "buscapd.conf", text);
	assert_false(load(f));
	for (const char *at = f->err; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	assert_int_equal(lines, COUNT_OF(parts));
	for (size_t i = 0; i < COUNT_OF(parts); i++)
		if (strstr(f->err, parts[i]) == NULL)
			fail_msg("'%s' is not in '%s'", parts[i], f->err);
}

TEST_F(a_byte_order_mark_and_inline_comments_are_accepted)
{
	write_file(f, "buscapd.conf",
		"\xef\xbb\xbf[pipeline] ; here\nworkers = 3 ; [log\n\n#[x\n;y\n[log]\r\nlevel: "
		"debug\r\n");
	if (!load(f))
		fail_msg("%s", f->err);
	assert_int_equal(f->config.workers, 3);
	assert_int_equal(f->config.log_level, BC_LOG_DEBUG);
}

/* The defaults in the table of settings, which users read, are those of bc_config_default(). */
TEST_F(documented_defaults_are_the_defaults)
{
	struct bc_config expected = {.names = NULL};
	unsigned count = 0;

	bc_config_default(&expected);
	for (const struct bc_config_key *key = bc_config_keys; key->name != NULL; key++) {
		char section[32];
		size_t n = strcspn(key->name, ".");
		if (key->initial == NULL || strcmp(key->name, "pipeline.workers") == 0 ||
			strcmp(key->name, "mapping.attr.CYCLE") == 0 ||
			strncmp(key->name, "trigger ", 8) == 0)
			continue;
		snprintf(section, sizeof(section), "%.*s", (int)n, key->name);
		memcpy(&f->config, &expected, sizeof(expected)); /* with its padding */
		set(f, section, key->name + n + 1, key->initial);
		f->config.usb.has_id = false;
		if (memcmp(&f->config, &expected, sizeof(expected)) != 0)
			fail_msg("%s: the default is not %s", key->name, key->initial);
		count++;
	}
	assert_true(count > 25);
}

/* Prints the configuration, reads that, and prints it again. */
TEST_F(what_is_printed_can_be_read)
{
	char *text[2] = {NULL, NULL};
	size_t bytes;

	write_file(f, "buscapd.conf",
		"[source]\nsource = usb:serial=B2,wait=1\nspeed = 2.5\n[usb]\nid = "
		"0403:6014\nlink = ftdi\nprotocol = raw6\ntransfer_timeout = 1.5\n"
		"ftdi_latency = 3ms\nftdi_mode = fifo\nsilence_action = restart\n"
		"[output]\nlabel = x\nsealed_command = /bin/true\n"
		"[recording]\nrecord = flight\nflight_time = 90s\nsampling = 10ms/1s\n"
		"metadata.b = 1 \"x\"\nmetadata.a = \xc3\xa9\n"
		"[filter]\nkeep.vga = addr=a0000-bffff\nkeep = proc=1\nleave_out.x = proc=3\n"
		"[trigger a]\nwhen = idle 5s\naction = stop\npost = 16K\n"
		"[trigger b]\nwhen = port=e0\naction = mark\ntext = here\nholdoff = 1.25ms\n"
		"[rotation]\nfilesize = 2001\nduration = 36h\nfiles = 7\n"
		"[space]\nmax_use = 1536KiB\n[pipeline]\nsync = 0.0015\nworkers = 3\n"
		"[mapping]\ninvalid = keep\nsize = v1.0\nattr.D_WRITE = 7\n"
		"[socket]\nreserve = mark, record\nmetrics_listen = [::1]:9180\n"
		"[log]\nlevel = debug\n");
	for (unsigned i = 0; i < 2; i++) {
		set_defaults(f);
		if (!load(f))
			fail_msg("%s", f->err);
		FILE *out = open_memstream(&text[i], &bytes);
		bc_config_print(out, &f->config);
		fclose(out);
		write_file(f, "buscapd.conf", text[i]);
	}
	assert_string_equal(text[0], text[1]);
	static const char *const lines[] = {"[usb]\nid = 0403:6014\nserial = B2\n",
		"\nprotocol = raw6\n", "\ntransfer_timeout = 1500ms\n", "\nwait = 1s\n",
		"\nsilence_action = restart\n", "\nftdi_latency = 3ms\nftdi_mode = fifo\n",
		"\nspeed = 2.5\n", "\nsampling = 10ms/1s\nmetadata.b = 1 \"x\"\n",
		"[filter]\nkeep.vga = addr=a0000-bffff\nkeep = proc=1\nleave_out.x = proc=3\n",
		"[trigger a]\nwhen = idle 5s\naction = stop\npre = 0\npost = 16KB\n",
		"\ntext = here\nholdoff = 1250us\n", "\nfilesize = 2001B\n", "\nduration = 36h\n",
		"\nmax_use = 1536KiB\n", "\nsync = 1500us\n",
		"\ninvalid = keep\nsize = v1.0\nattr.INT_ACK = 0\n", "\nattr.D_WRITE = 7\n",
		"\nreserve = record, mark\nmetrics_listen = [::1]:9180\n", "\nlevel = debug\n",
		"\nmax_age = 0\n"};
	for (size_t i = 0; i < COUNT_OF(lines); i++)
		if (strstr(text[0], lines[i]) == NULL)
			fail_msg("'%s' is not in '%s'", lines[i], text[0]);
	free(text[0]);
	free(text[1]);
}

static void on_change(void *context, const char *name, bool is_applied)
{
	char text[80];

	snprintf(text, sizeof(text), "%s%s", is_applied ? "+" : "-", name);
	on_error(context, text);
}

TEST_F(a_reload_applies_what_may_change_and_names_what_has_changed)
{
	struct bc_config new = {.names = NULL};

	bc_config_default(&new);
	assert_true(bc_config_set(&new, "rotation", "files", "7", f->err, sizeof(f->err)));
	assert_true(bc_config_set(&new, "filter", "keep", "proc=1", f->err, sizeof(f->err)));
	assert_true(bc_config_set(&new, "trigger x", "when", "gap", f->err, sizeof(f->err)));
	assert_true(bc_config_set(&new, "pipeline", "buffer", "64MiB", f->err, sizeof(f->err)));
	set(f, "output", "label", "longer");
	set(f, "output", "label", "");
	f->err[0] = '\0';
	bc_config_reload(&f->config, &new, f, on_change);
	assert_string_equal(f->err, "+filter.keep\n+triggers\n+rotation.files\n");
	f->err[0] = '\0';
	assert_int_equal(f->config.rotation.files, 7);
	assert_int_equal(f->config.filter.keep.count, 1);
	assert_int_equal(f->config.triggers_count, 1);
	assert_true(bc_config_set(&new, "pipeline", "buffer", "65MiB", f->err, sizeof(f->err)));
	assert_true(bc_config_set(&new, "usb", "id", "1209:0002", f->err, sizeof(f->err)));
	assert_true(bc_config_set(&new, "mapping", "attr.D_READ", "1", f->err, sizeof(f->err)));
	bc_config_reload(&f->config, &new, f, on_change);
	assert_string_equal(f->err, "-usb.id\n-pipeline.buffer\n-mapping.attr.CYCLE\n");
	assert_int_equal(f->config.buffer_bytes, 64u << 20);
}

TEST_F(metrics_listen_accepts_only_loopback_addresses)
{
	static const char *const good[] = {"127.0.0.1:1", "127.1.2.3:65535", "[::1]:9180",
		"127.0.0.1:9180", "localhost:9180", ""};
	static const char *const bad[] = {"0.0.0.0:9180", "192.168.0.1:9180", "[::]:9180",
		"[fe80::1]:9180", "::1:9180", "example.org:9180", "127.0.0.1", "127.0.0.1:0",
		"127.0.0.1:65536", "127.0.0.1:", "127.0.0.1:x", ":9180", "127.1:9180",
		"127.0.0.1:9180 ", "[::1]", "127.0.0.1.1:9180"};

	for (size_t i = 0; i < COUNT_OF(good); i++) {
		assert_true(bc_config_set(
			&f->config, "socket", "metrics_listen", good[i], f->err, sizeof(f->err)));
		assert_string_equal(f->config.metrics_listen, good[i]);
	}
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		assert_false(bc_config_set(
			&f->config, "socket", "metrics_listen", bad[i], f->err, sizeof(f->err)));
		assert_non_null(strstr(f->err, "127.0.0.1:PORT"));
	}
}

TEST_F(only_an_optional_file_may_be_missing)
{
	assert_false(load(f));
	assert_non_null(strstr(f->err, "No such file"));
	assert_true(load_from(f, f->file, true));
	assert_false(load_from(f, f->dir.path, true));
}

TEST_F(conflicting_settings_are_rejected)
{
	struct bc_config *c = &f->config;

	assert_false(check(f));
	assert_non_null(strstr(f->err, "no source"));
	assert_true(bc_config_set(c, "source", "source", "sim", f->err, sizeof(f->err)));
	assert_true(check(f));
	assert_true(bc_config_set(c, "source", "speed", "2", f->err, sizeof(f->err)));
	assert_false(check(f));
	assert_non_null(strstr(f->err, "speed"));
	assert_true(bc_config_set(c, "source", "speed", "max", f->err, sizeof(f->err)));
	c->workers = 2;
	c->buffer_bytes = bc_pipeline_min_bytes(2);
	assert_true(check(f));
	c->buffer_bytes--;
	assert_false(check(f));
	assert_non_null(strstr(f->err, "buffer"));
}

static void assert_invalid(struct fixture *f, const char *part)
{
	assert_false(check(f));
	if (strstr(f->err, part) == NULL)
		fail_msg("'%s' for '%s'", f->err, part);
}

static void assert_valid(struct fixture *f)
{
	if (!check(f))
		fail_msg("%s", f->err);
}

/* Settings, and what is wrong with all up to here; NULL: nothing. */
struct step {
	const char *settings[6];
	const char *error;
};

/* Each setting is "SECTION.KEY=VALUE". */
static void take_steps(struct fixture *f, const struct step *steps, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (const char *const *setting = steps[i].settings; *setting != NULL; setting++) {
			char section[64];
			snprintf(section, sizeof(section), "%s", *setting);
			char *value = strchr(section, '=');
			*value++ = '\0';
			char *key = strchr(section, '.');
			*key++ = '\0';
			set(f, section, key, value);
		}
		if (steps[i].error == NULL)
			assert_valid(f);
		else
			assert_invalid(f, steps[i].error);
	}
}

TEST_F(recording_on_demand_needs_a_live_source)
{
	static const struct step steps[] = {
		{{"recording.record=on-demand", "source.source=usb"}, NULL},
		{{"source.source=sim:rate=1M"}, NULL},
		{{"source.source=sim:rate=max"}, "needs a live source"},
		{{"source.source=file:x"}, "on-demand"},
		{{"recording.record=flight"}, "flight"},
		{{"source.source=sim:rate=max"}, "needs a live source"},
		{{"source.source=sim:rate=1M"}, NULL},
		{{"source.source=usb"}, NULL},
	};

	take_steps(f, steps, COUNT_OF(steps));
}

TEST_F(the_flight_recorder_fits_next_to_what_the_workers_need)
{
	struct bc_config *c = &f->config;

	set(f, "source", "source", "usb");
	set(f, "recording", "record", "flight");
	assert_valid(f);
	c->workers = 2;
	c->buffer_bytes = bc_pipeline_min_bytes(2) + (8u << 20);
	set(f, "recording", "flight_size", "8MiB");
	assert_valid(f);
	c->buffer_bytes--;
	assert_invalid(f, "flight_size: too large; a buffer of");
	set(f, "recording", "flight_size", "0");
	assert_valid(f);
}

TEST_F(incomplete_triggers_are_rejected)
{
	static const struct step steps[] = {
		{{"source.source=usb", "trigger x.when=gap"}, "trigger x: action is missing"},
		{{"trigger x.action=mark"}, NULL},
		{{"trigger x.pre=5s"}, "trigger x: pre needs action start"},
		{{"trigger x.action=start"}, "trigger x: pre needs record = flight"},
		{{"trigger x.pre=0"}, "trigger x: start has no effect with record = always"},
		{{"stop.records=5"}, NULL},
		{{"trigger x.action=snapshot"}, "trigger x: snapshot needs record = flight"},
		{{"recording.record=flight", "trigger x.pre=all", "trigger x.post=1G"}, NULL},
		{{"trigger x.action=toggle"}, "trigger x: post needs action start"},
		{{"trigger y.action=mark", "trigger x.action=start"}, "trigger y: when is missing"},
		{{"trigger y.when=proc=1"}, NULL},
		{{"recording.record=always", "trigger x.pre=0", "source.source=file:x"},
			"trigger x: start needs a board"},
		{{"trigger x.action=stop"}, NULL},
	};

	take_steps(f, steps, COUNT_OF(steps));
}

TEST_F(conflicts_are_reported_together)
{
	static const struct step steps[] = {
		{{"source.source=usb", "space.max_use=1K", "usb.silence=0",
			 "usb.silence_action=restart"},
			"space.max_use: must be at least 2 MiB"},
		{{"trigger x.when=gap", "trigger x.action=start", "trigger y.when=gap"},
			"silence_action = restart: never happens with silence = 0"},
		{{NULL}, "trigger x: start has no effect with record = always"},
		{{NULL}, "trigger y: action is missing"},
	};

	take_steps(f, steps, COUNT_OF(steps));
}

TEST_F(max_use_has_space_for_the_open_files)
{
	static const struct step steps[] = {
		{{"source.source=usb", "space.max_use=2MiB"}, NULL},
		{{"space.max_use=1M"}, "space.max_use: must be at least"},
		{{"space.max_use=8MiB", "rotation.filesize=8MiB"},
			"space.max_use: must be at least 10 MiB with this rotation.filesize"},
		{{"space.max_use=10MiB"}, NULL},
	};

	take_steps(f, steps, COUNT_OF(steps));
}

TEST_F(once_removes_triggers_that_start_a_recording)
{
	static const struct step steps[] = {
		{{"source.source=usb", "recording.record=flight", "trigger a.when=gap",
			 "trigger a.action=snapshot"},
			NULL},
		{{"trigger b.when=gap", "trigger b.action=toggle", "trigger b.pre=5s",
			 "trigger c.when=gap", "trigger c.action=start"},
			NULL},
	};

	take_steps(f, steps, COUNT_OF(steps));
	bc_config_make_once(&f->config);
	assert_valid(f);
	assert_int_equal(f->config.recording.mode, BC_RECORD_ALWAYS);
	assert_int_equal(f->config.triggers_count, 1);
	assert_string_equal(f->config.triggers[0].name, "b");
	assert_int_equal(f->config.triggers[0].pre.unit, BC_TIME_OR_SIZE_NONE);
}

TEST_F(too_many_triggers_are_rejected)
{
	char section[32];

	for (unsigned i = 0; i < BC_TRIGGERS_CONFIGURED; i++) {
		snprintf(section, sizeof(section), "trigger t%u", i);
		set(f, section, "when", "gap");
	}
	set(f, "trigger t3", "action", "mark");
	assert_false(
		bc_config_set(&f->config, "trigger more", "when", "gap", f->err, sizeof(f->err)));
	assert_non_null(strstr(f->err, "too many triggers"));
	assert_int_equal(f->config.triggers_count, BC_TRIGGERS_CONFIGURED);
}

TEST_F(metadata_are_limited_to_what_a_header_holds)
{
	struct bc_recording_settings *r = &f->config.recording;
	char key[24];
	char value[160];
	char before[BC_METADATA_MAX];
	unsigned n = 0;

	memset(value, '"', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	do {
		memcpy(before, r->metadata, sizeof(before));
		snprintf(key, sizeof(key), "metadata.%u", n);
	} while (n++ < 100 &&
		 bc_config_set(&f->config, "recording", key, value, f->err, sizeof(f->err)));
	assert_true(n > 10 && n < 16);
	assert_non_null(strstr(f->err, "metadata is longer than"));
	assert_string_equal(before, r->metadata);
	for (unsigned i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "metadata.%u", i);
		set(f, "recording", key, "");
	}
	assert_string_equal(r->metadata, "");
}

/* Calls bc_daemon_options_config() with these arguments and a file. */
static bool configure(struct fixture *f, const char *const *arguments)
{
	const char *const first[] = {"buscapd", "-c", f->file, "--source", "sim"};
	char *argv[16] = {NULL};
	struct bc_config_errors errors = {.context = f, .on_error = on_error};
	struct bc_daemon_options options;
	int argc = 0;

	while (argc < 5) {
		argv[argc] = strdup(first[argc]);
		argc++;
	}
	while (*arguments != NULL)
		argv[argc++] = strdup(*arguments++);
	write_file(
		f, "buscapd.conf", "[recording]\nrecord = flight\n[socket]\npath = /of/the/file\n");
	optind = 0;
	assert_int_equal(bc_daemon_options_read(&options, argc, argv), BC_OPTIONS_RUN);
	f->err[0] = '\0';
	bc_name_map_close(f->config.names);
	memset(&f->config, 0, sizeof(f->config));
	bool is_good = bc_daemon_options_config(&options, &f->config, &errors);
	while (argc > 0)
		free(argv[--argc]);
	return is_good;
}

TEST_F(once_opens_only_a_socket_of_the_command_line)
{
	assert_true(configure(f, (const char *[]){NULL}));
	assert_string_equal(f->config.socket, "/of/the/file");
	assert_true(configure(f, (const char *[]){"--once", NULL}));
	assert_string_equal(f->config.socket, "");
	assert_true(configure(f, (const char *[]){"--once", "--socket", "/a", NULL}));
	assert_string_equal(f->config.socket, "/a");
	assert_true(configure(f, (const char *[]){"--once", "--set", "socket.path=/b", NULL}));
	assert_string_equal(f->config.socket, "/b");
	assert_true(configure(f, (const char *[]){"--set", "socket.path=/b", "--no-socket", NULL}));
	assert_string_equal(f->config.socket, "");
}

TEST_F(once_conflicts_only_with_a_record_mode_on_the_command_line)
{
	assert_true(configure(f, (const char *[]){NULL}));
	assert_int_equal(f->config.recording.mode, BC_RECORD_FLIGHT);
	assert_true(configure(f, (const char *[]){"--once", NULL}));
	assert_int_equal(f->config.recording.mode, BC_RECORD_ALWAYS);
	assert_true(
		configure(f, (const char *[]){"--once", "--set", "recording.record=always", NULL}));
	assert_false(configure(
		f, (const char *[]){"--once", "--set", "recording.record=on-demand", NULL}));
	assert_non_null(strstr(f->err, "--once always records from the start"));
	assert_true(configure(f, (const char *[]){"--set", "trigger x.when=port=e0-e3", "--set",
					 "trigger x.action=mark", NULL}));
	assert_string_equal(f->config.triggers[0].when, "port=e0-e3");
}
