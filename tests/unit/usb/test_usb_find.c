/* Which devices are boards, and why others are not: bc_usb_list(), and the source with boards that
 * have false descriptors. */
#include <errno.h>

#include "capture/usb/usb_find.h"
#include "tests/support/test.h"
#include "tests/support/usb_run.h"

TEST_THREADS;
TEST_VALGRIND;

struct fixture {
	libusb_context *context;
	struct bc_usb_match match;
	struct bc_usb_list list;
	struct board *boards[8];
	struct usbfs_port *ports[8];
	unsigned count;
};

static void set_up(struct fixture *f)
{
	usbfs_start();
	f->match = (struct bc_usb_match){.vid = 0x1209, .pid = 0x0001};
}

static void tear_down(struct fixture *f)
{
	for (unsigned i = 0; i < f->count; i++)
		board_free(f->boards[i]);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void plug(struct fixture *f, const struct board_options *options, const char *lie)
{
	struct board *board = board_new(options);
	char answer[BOARD_ANSWER];

	assert_non_null(board);
	if (lie != NULL)
		assert_true(board_command(board, lie, answer, 0));
	f->boards[f->count] = board;
	f->ports[f->count++] = usbfs_plug(board);
}

static void find_start(struct fixture *f)
{
	assert_int_equal(libusb_init(&f->context), 0);
	assert_int_equal(bc_usb_list(&f->list, f->context, &f->match), 0);
}

static void find_finish(struct fixture *f)
{
	bc_usb_list_free(&f->list);
	assert_int_equal(f->list.count, 0);
	libusb_exit(f->context);
	struct usbfs_leaks leaks = usbfs_stop();
	assert_int_equal(leaks.nodes, 0);
	assert_int_equal(leaks.monitors, 0);
}

static const struct bc_usb_device *find(const struct fixture *f, const char *port)
{
	for (size_t i = 0; i < f->list.count; i++)
		if (strcmp(f->list.devices[i].identity.port, port) == 0)
			return &f->list.devices[i];
	fail_msg("nothing at %s", port);
	return NULL;
}

TEST_F(boards_come_first_sorted_by_port)
{
	const struct board_options other = {.vid = 0x0403, .pid = 0x6014, .serial = "F"};
	const struct board_options a = {.serial = "A1"};
	const struct board_options b = {.serial = "B2", .packet_bytes = 64};

	plug(f, &other, NULL);
	plug(f, &a, NULL);
	plug(f, &b, NULL);
	find_start(f);
	assert_int_equal(f->list.count, 4);
	assert_int_equal(f->list.matching, 2);
	assert_string_equal(f->list.devices[0].identity.port, "1-2");
	assert_string_equal(f->list.devices[0].identity.serial, "A1");
	assert_string_equal(f->list.devices[0].identity.speed, "high");
	assert_string_equal(f->list.devices[0].reject_reason, "");
	assert_int_equal(f->list.devices[0].identity.packet_bytes, 512);
	assert_string_equal(f->list.devices[1].identity.port, "1-3");
	assert_string_equal(f->list.devices[1].identity.speed, "full");
	assert_int_equal(f->list.devices[1].identity.packet_bytes, 64);
	assert_string_equal(find(f, "1-1")->reject_reason, "not 1209:0001");
	assert_int_equal(find(f, "1-1")->identity.vid, 0x0403);
	assert_string_equal(find(f, "usb1")->reject_reason, "not 1209:0001");
	assert_int_equal(usbfs_calls_of(USBFS_OPEN), 0); /* needs no permissions */
	find_finish(f);
}

TEST_F(a_serial_number_selects_the_board)
{
	const struct board_options a = {.serial = "A1"};
	const struct board_options none = {0};
	char text[BC_USB_MATCH_TEXT];

	plug(f, &a, NULL);
	plug(f, &none, NULL);
	snprintf(f->match.serial, sizeof(f->match.serial), "B2");
	find_start(f);
	assert_int_equal(f->list.matching, 0);
	assert_true(find(f, "1-1")->is_other);
	assert_true(find(f, "1-2")->is_other);
	assert_false(find(f, "usb1")->is_other);
	assert_string_equal(find(f, "1-1")->reject_reason, "different serial number");
	bc_usb_match_write(text, &f->match);
	assert_string_equal(text, "1209:0001 with serial number B2");
	bc_usb_list_free(&f->list);
	f->match.serial[0] = '\0';
	bc_usb_match_write(text, &f->match);
	assert_string_equal(text, "1209:0001");
	assert_int_equal(bc_usb_list(&f->list, f->context, &f->match), 0);
	assert_int_equal(f->list.matching, 2);
	bc_usb_list_free(&f->list);
	f->match.is_exact = true;
	bc_usb_match_write(text, &f->match);
	assert_string_equal(text, "1209:0001 without serial number");
	assert_int_equal(bc_usb_list(&f->list, f->context, &f->match), 0);
	assert_int_equal(f->list.matching, 1);
	assert_true(find(f, "1-1")->is_other);
	find_finish(f);
}

TEST_F(a_port_selects_the_board)
{
	const struct board_options a = {.serial = "A1"};
	char text[BC_USB_MATCH_TEXT];

	plug(f, &a, NULL);
	plug(f, &a, NULL);
	snprintf(f->match.port, sizeof(f->match.port), "1-2");
	find_start(f);
	assert_int_equal(f->list.matching, 1);
	assert_string_equal(f->list.devices[0].identity.port, "1-2");
	assert_true(find(f, "1-1")->is_other);
	assert_string_equal(find(f, "1-1")->reject_reason, "not at port 1-2");
	snprintf(f->match.serial, sizeof(f->match.serial), "A1");
	bc_usb_match_write(text, &f->match);
	assert_string_equal(text, "1209:0001 with serial number A1 at port 1-2");
	find_finish(f);
}

TEST(ports_are_as_in_sysfs)
{
	static const char *const good[] = {"1-1", "12-3", "1-2.3", "255-255.1.2.3.4.5.6"};
	static const char *const bad[] = {"", "1", "1-", "-1", "1.2", "1-2.", "1-2-3", "1-a",
		" 1-2", "1-2 ", "usb1", "1-1234", "1-1.2.3.4.5.6.7.8", "1-+2"};

	for (size_t i = 0; i < COUNT_OF(good); i++)
		assert_true(bc_usb_is_port(good[i]));
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_false(bc_usb_is_port(bad[i]));
}

static const struct lie {
	const char *command;
	const char *reject_reason; /* NULL: it is still a board */
} lies[] = {
	{"lie no-endpoint", "without a bulk IN endpoint"},
	{"lie iso-endpoint", "without a bulk IN endpoint"},
	{"lie out-endpoint", "without a bulk IN endpoint"},
	{"lie zero-packet", "invalid packet size"},
	{"lie huge-packet", "invalid packet size"},
	{"lie truncated-config", ""},
	{"lie long-config", NULL},
	{"lie wrong-class", "no vendor-specific interface"},
	{"lie many-interfaces", NULL},
	{"lie alternate", NULL},
	{"lie short-info", NULL},
	{"lie wild-info", NULL},
	{"lie wild-serial", NULL},
};

#define LIES (COUNT_OF(lies))

TEST_F(the_list_says_what_is_wrong_with_false_descriptors)
{
	const struct board_options a = {.serial = "A1"};

	for (size_t i = 0; i < LIES; i++) {
		plug(f, &a, lies[i].command);
		find_start(f);
		const struct bc_usb_device *d = find(f, "1-1");
		if (lies[i].reject_reason == NULL)
			assert_string_equal(d->reject_reason, "");
		else
			assert_true(d->reject_reason[0] != '\0' &&
				    strstr(d->reject_reason, lies[i].reject_reason) != NULL);
		for (const char *c = d->identity.serial; *c != '\0'; c++)
			assert_true(*c >= ' ' && *c <= '~');
		assert_int_equal(f->list.matching, lies[i].reject_reason == NULL);
		find_finish(f);
		board_free(f->boards[0]);
		f->count = 0;
		usbfs_start();
	}
	usbfs_stop();
}

/* Devices that can't be read are not boards, but remain in the list. */
TEST_F(unreadable_files_are_tolerated)
{
	static const int errors[] = {EACCES, EIO, ENOENT, ENOMEM};
	const struct board_options a = {.serial = "A1"};

	plug(f, &a, NULL);
	assert_int_equal(libusb_init(&f->context), 0);
	for (unsigned e = 0; e < COUNT_OF(errors); e++) {
		for (unsigned skip = 0; skip < 12; skip++) {
			usbfs_fail(USBFS_SYSFS, errors[e], skip, 1);
			assert_int_equal(bc_usb_list(&f->list, f->context, &f->match), 0);
			assert_int_equal(f->list.count, 2);
			bc_usb_list_free(&f->list);
		}
		usbfs_fail(USBFS_SYSFS, errors[e], 0, 1000);
		assert_int_equal(bc_usb_list(&f->list, f->context, &f->match), 0);
		assert_int_equal(f->list.count, 2);
		assert_int_equal(find(f, "1-1")->is_gone, errors[e] == ENOENT);
		usbfs_fail(USBFS_SYSFS, 0, 0, 0);
		bc_usb_list_free(&f->list);
	}
	find_finish(f);
}

/* The source with such boards */

TEST_RUN(the_source_streams_from_a_board_or_logs_the_reason)
{
	for (size_t i = 0; i < LIES; i++) {
		char answer[BOARD_ANSWER];
		usb_run_board(run, 1000000);
		assert_true(board_command(run->board, lies[i].command, answer, 0));
		usb_run_plug(run);
		usb_run_start(run);
		if (lies[i].reject_reason == NULL) {
			usb_run_receive(run, 5000);
			usb_run_stop(run);
			assert_int_equal(run->status, 0);
			assert_int_equal(run->samples, usbfs_sent(run->port).samples);
			assert_int_equal(run->last_frames, 1);
		} else {
			usb_run_until(run, usb_run_logged(run, "is not a board: "));
			assert_true(usb_run_logged(run, lies[i].reject_reason));
			usb_run_stop(run);
		}
		usb_run_again(run);
	}
}

/* The board changes between the list and the open. */
TEST_RUN(a_board_may_change_its_descriptors_at_any_time)
{
	for (size_t i = 0; i < LIES; i++) {
		usb_run_stream(run, 1000000);
		uv_run(&run->loop, UV_RUN_ONCE);
		usb_run_command(run, lies[i].command);
		usb_run_wait(run, 10);
		usb_run_stop(run);
		assert_int_equal(run->status, 0);
		usb_run_again(run);
	}
}

TEST(texts_are_made_printable)
{
	char text[] = "A\x01z\x7f\xff~ \n";

	bc_usb_make_printable(text);
	assert_string_equal(text, "A?z??~ ?");
}

TEST(every_code_of_libusb_is_an_errno)
{
	assert_int_equal(bc_usb_errno(0), 0);
	assert_int_equal(bc_usb_errno(LIBUSB_ERROR_NO_DEVICE), -ENODEV);
	assert_int_equal(bc_usb_errno(LIBUSB_ERROR_ACCESS), -EACCES);
	assert_int_equal(bc_usb_errno(LIBUSB_ERROR_NO_MEM), -ENOMEM);
	assert_int_equal(bc_usb_errno(LIBUSB_ERROR_OTHER), -EIO);
	for (int code = -120; code < 0; code++)
		assert_true(bc_usb_errno(code) < 0);
}
