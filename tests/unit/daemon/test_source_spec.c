#include <string.h>

#include "daemon/config/config_keys.h"
#include "daemon/config/source_spec.h"
#include "tests/support/test.h"
#include "tests/support/usb_options.h"

static struct bc_source_spec read_good(const char *text)
{
	struct bc_source_spec spec;
	char err[512] = "";

	if (!bc_source_spec_read(&spec, text, err, sizeof(err)))
		fail_msg("%s: %s", text, err);
	return spec;
}

TEST(a_file_is_named_by_its_path)
{
	struct bc_source_spec spec = read_good("file:/a/b c.bcp1");

	assert_int_equal(spec.kind, BC_SOURCE_FILE);
	assert_string_equal(spec.path, "/a/b c.bcp1");
	assert_int_equal(spec.format, BC_FORMAT_UNKNOWN);
	assert_int_equal(spec.clock_hz, 0);
	assert_string_equal(read_good("file:-").path, "-");
	assert_string_equal(read_good("file:./~").path, "./~");
	assert_string_equal(read_good("file:~a").path, "~a");
}

TEST(settings_of_a_file_follow_commas)
{
	struct bc_source_spec spec = read_good("file:x,format=raw6,clock_hz=100000000");

	assert_string_equal(spec.path, "x");
	assert_int_equal(spec.format, BC_FORMAT_RAW6);
	assert_int_equal(spec.clock_hz, 100000000);
	spec = read_good("file:x,clock_hz=5,format=byu-be");
	assert_int_equal(spec.format, BC_FORMAT_BYU_BE);
	assert_int_equal(spec.clock_hz, 5);
}

TEST(a_path_may_contain_commas)
{
	assert_string_equal(read_good("file:a,b").path, "a,b");
	assert_string_equal(read_good("file:a,b,format=byu").path, "a,b");
	assert_string_equal(read_good("file:a,B=1").path, "a,B=1");
}

TEST(the_simulated_bus_has_defaults_and_settings)
{
	struct bc_source_spec spec = read_good("sim");

	assert_int_equal(spec.kind, BC_SOURCE_SIM);
	assert_int_equal(spec.rate, 1000000);
	assert_int_equal(spec.sim.count, 0);
	assert_int_equal(spec.sim.agents, 1);
	spec = read_good(
		"sim:rate=max,count=3M,seed=18446744073709551615,agents=4,loss=0.5,corrupt=1");
	assert_int_equal(spec.rate, 0);
	assert_int_equal(spec.sim.count, 3000000);
	assert_true(spec.sim.seed == UINT64_MAX);
	assert_int_equal(spec.sim.agents, 4);
	assert_int_equal(spec.sim.loss_ppm, 500000);
	assert_int_equal(spec.sim.corrupt_ppm, 1000000);
	assert_int_equal(read_good("sim:rate=20k").rate, 20000);
}

TEST(settings_of_a_board_follow_commas)
{
	struct bc_usb_options usb = usb_options_default();
	char err[512] = "";
	const char *text =
		"usb:id=0403:6014,serial=A 1,port=1-2.3,protocol=raw6,link=ftdi,transfers=8,"
		"transfer_size=1M,transfer_timeout=250ms,clock_hz=66000000,wait=0,"
		"silence=1s,silence_action=restart,back_off=5ms,back_off_max=1s,"
		"ftdi_latency=2ms,ftdi_mode=fifo";

	assert_int_equal(read_good("usb").kind, BC_SOURCE_USB);
	struct bc_source_spec spec = read_good(text);
	assert_int_equal(spec.kind, BC_SOURCE_USB);
	assert_true(bc_usb_settings_read(&usb, spec.usb, err, sizeof(err)));
	assert_int_equal(usb.match.vid, 0x0403);
	assert_int_equal(usb.match.pid, 0x6014);
	assert_string_equal(usb.match.serial, "A 1");
	assert_string_equal(usb.match.port, "1-2.3");
	assert_int_equal(usb.protocol, BC_FORMAT_RAW6);
	assert_int_equal(usb.link, BC_USB_FTDI);
	assert_int_equal(usb.transfers, 8);
	assert_int_equal(usb.transfer_bytes, 1000000);
	assert_int_equal(usb.timeout_ms, 250);
	assert_int_equal(usb.clock_hz, 66000000);
	assert_int_equal(usb.wait_ns, 0);
	assert_int_equal(usb.silence_ns, 1000000000);
	assert_true(usb.reset_on_silence);
	assert_int_equal(usb.back_off_ns, 5000000);
	assert_int_equal(usb.back_off_max_ns, 1000000000);
	assert_int_equal(usb.ftdi.latency_ms, 2);
	assert_true(usb.ftdi.keeps_mode);
}

TEST(errors_name_the_problem)
{
	static const struct {
		const char *text;
		const char *part; /* of the message */
	} bad[] = {
		{"", "unknown source"},
		{"files:x", "unknown source; use usb"},
		{"-", "unknown source; try file:-"},
		{"/dev/null", "unknown source; try file:/dev/null"},
		{"file:", "path"},
		{"file:,format=byu", "path"},
		{"file:~", "~ is not expanded"},
		{"file:~/a,format=byu", "~ is not expanded"},
		{"file:x,format=wav", "format: must be segment, bcp1"},
		{"file:x,format=unknown", "format: must be "},
		{"file:x,clock_hz=0", "clock_hz: must be above 0"},
		{"file:x,clock_hz=66XHz", "clock_hz: unknown unit XHz"},
		{"file:x,speed=2", "unknown setting"},
		{"sim:agents=0", "agents: must be a number from 1 to 4"},
		{"sim:agents=5", "agents: must be a number from 1 to 4"},
		{"sim:loss=2", "loss: must be a probability from 0 to 1"},
		{"sim:loss=-1", "loss: must be "},
		{"sim:loss=nan", "loss: must be "},
		{"sim:rate=0", "rate: must be max, or a number from 1 to 1G"},
		{"sim:rate=2G", "rate: must be max"},
		{"sim:count=0", "count: must be a number above 0"},
		{"sim:count=1x", "count: unknown unit x; use K, M"},
		{"sim:count=10MB", "count: unknown unit MB; use K, M"},
		{"sim:speed=1", "speed=1"},
		{"sim:seed=-1", "seed: not a decimal number"},
		{"sim:,", "unknown setting; use rate="},
		{"simulator", "unknown source"},
		{"usbx", "unknown source"},
	};

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		struct bc_source_spec spec;
		char err[512] = "";
		if (bc_source_spec_read(&spec, bad[i].text, err, sizeof(err)))
			fail_msg("'%s' was accepted", bad[i].text);
		if (strstr(err, bad[i].part) == NULL)
			fail_msg("'%s': '%s' does not contain '%s'", bad[i].text, err, bad[i].part);
	}
}
