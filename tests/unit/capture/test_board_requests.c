#include "capture/sim/sim.h"
#include "tests/board/rig.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

/* FTDI */

static void ftdi_set(struct rig *rig, uint8_t request, uint16_t value, uint16_t index)
{
	assert_int_equal(control(rig, 0x40, request, value, index, 0), 0);
}

/* Runs one transfer; checks and removes its status bytes. */
static int ftdi_transfer(struct rig *rig, size_t packet)
{
	static uint8_t data[sizeof(rig->data)];
	int rc = board_bulk_in(rig->board, data, rig->room, &rig->bytes, rig->now_ns);
	size_t n = 0;

	for (size_t at = 0; at < rig->bytes; at += packet) {
		size_t piece = rig->bytes - at < packet ? rig->bytes - at : packet;
		assert_true(piece >= 2);
		assert_int_equal(data[at], 0x32);
		assert_int_equal(data[at + 1], 0x60);
		memcpy(rig->data + n, data + at + 2, piece - 2);
		n += piece - 2;
	}
	receive(&rig->receiver, rig->data, n, false);
	return rc;
}

static const struct board_options ftdi = {.is_ftdi = true, .serial = "FT1"};

TEST_RIG(ftdi_streams_in_sync_fifo_mode)
{
	static const uint16_t packets[] = {64, 512, 1024};

	for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		struct board_options options = ftdi;
		options.packet_bytes = packets[i];
		open_board(rig, &options);
		rig->now_ns += SECOND_NS;
		ftdi_set(rig, 11, 0x40FF, 1);
		for (rig->room = packets[i]; rig->room < 40000; rig->room += packets[i] * 3) {
			assert_int_equal(ftdi_transfer(rig, packets[i]), 0);
			assert_int_equal(rig->bytes, rig->room);
		}
		assert_true(rig->receiver.samples > 5000);
		assert_int_equal(rig->receiver.reader.skipped_bytes, 0);
		assert_int_equal(board_sent(rig->board).starts, 1);
		check_ledger(rig);

		ftdi_set(rig, 11, 0, 1);
		assert_int_equal(board_sent(rig->board).stops, 1);
		rig->now_ns += SECOND_NS;
		uint64_t before = rig->receiver.bytes;
		rig->room = 10240;
		assert_int_equal(ftdi_transfer(rig, packets[i]), 0);
		assert_in_range(rig->receiver.bytes - before, 1, 1024); /* were in the chip */
		rig->now_ns += SECOND_NS;
		assert_int_equal(ftdi_transfer(rig, packets[i]), 0);
		assert_int_equal(rig->bytes, 2);
		check_ledger_at_end(rig);
		assert_true(board_sent(rig->board).torn_frames <= 1);

		ftdi_set(rig, 11, 0x40FF, 1);
		assert_int_equal(ftdi_transfer(rig, packets[i]), 0);
		assert_int_equal(rig->bytes, rig->room);
	}
}

/* What the chip has read when it is halted stays in its buffer until it is read or purged. */
TEST_RIG(ftdi_keeps_stale_bytes_until_they_are_purged)
{
	for (uint16_t purge = 1; purge < 3; purge++) {
		open_board(rig, &ftdi);
		rig->room = 5120;
		ftdi_set(rig, 11, 0x40FF, 1);
		ftdi_set(rig, 11, 0, 1);
		ftdi_set(rig, 0, purge, 1);
		assert_int_equal(ftdi_transfer(rig, 512), 0);
		assert_int_equal(rig->receiver.bytes, purge == 1 ? 1024 : 0);
		check_ledger_at_end(rig);
	}
}

TEST_RIG(a_board_that_answers_no_requests_sends_by_itself)
{
	for (int i = 0; i < 4; i++) {
		open_board(rig, &(struct board_options){.is_ftdi = i % 2 == 1});
		command(rig, i < 2 ? "requests stall" : "requests hang");
		int rc = i < 2 ? -EPIPE : -ETIMEDOUT;
		assert_int_equal(control(rig, 0xC1, 1, 0, 0, 64), rc);
		assert_int_equal(control(rig, 0x41, 2, 0, 0, 0), rc);
		assert_int_equal(control(rig, 0x40, 11, 0x40FF, 1, 0), rc);
		assert_int_equal(control(rig, 0x80, 6, 0x0100, 0, 18), 18);
		assert_int_equal(i % 2 == 1 ? ftdi_transfer(rig, 512) : transfer(rig), 0);
		assert_int_equal(rig->bytes, rig->room);
		assert_true(rig->receiver.samples > 1000);
		assert_int_equal(board_sent(rig->board).starts, 0);
		board_unplug(rig->board);
		board_plug(rig->board, rig->now_ns);
		assert_int_equal(transfer(rig), 0);
		command(rig, "requests answer");
		assert_int_equal(control(rig, 0x80, 8, 0, 0, 1), 1);
	}
}

/* Descriptors and requests */

/* Walks a configuration as a host does. */
struct walk {
	unsigned interfaces;
	unsigned settings;
	unsigned endpoints;
	unsigned companions;
	const uint8_t *interface; /* the last one */
	const uint8_t *endpoint;  /* the first one */
};

static struct walk walk(const uint8_t *config, size_t n)
{
	struct walk w = {0};

	assert_true(n >= 9);
	for (size_t at = 9; at < n; at += config[at]) {
		const uint8_t *d = config + at;
		assert_true(n - at >= 2 && d[0] >= 2 && d[0] <= n - at);
		if (d[1] == 4) {
			w.interfaces += d[3] == 0;
			w.settings++;
			w.interface = d;
		} else if (d[1] == 5) {
			w.endpoint = w.endpoint == NULL ? d : w.endpoint;
			w.endpoints++;
		} else {
			assert_int_equal(d[1], 48);
			w.companions++;
		}
	}
	return w;
}

static size_t get_descriptor(struct rig *rig, unsigned type, unsigned index)
{
	int n = control(rig, 0x80, 6, (uint16_t)(type << 8 | index), 0, 4096);

	return n < 0 ? 0 : (size_t)n;
}

static void assert_text(struct rig *rig, unsigned index, const char *text)
{
	size_t n = get_descriptor(rig, 3, index);

	assert_int_equal(n, 2 + 2 * strlen(text));
	assert_int_equal(rig->data[0], n);
	assert_int_equal(rig->data[1], 3);
	for (size_t i = 0; text[i] != '\0'; i++)
		assert_int_equal(bc_le16(rig->data + 2 + 2 * i), (uint8_t)text[i]);
}

TEST_RIG(descriptors_are_complete_at_every_speed)
{
	static const struct {
		uint16_t packet;
		uint16_t version;
		uint8_t control;
	} speeds[] = {{64, 0x0110, 64}, {512, 0x0200, 64}, {1024, 0x0300, 9}};

	for (size_t i = 0; i < 6; i++) {
		bool is_ftdi = i >= 3;
		uint16_t packet = speeds[i % 3].packet;
		open_board(rig,
			&(struct board_options){
				.packet_bytes = packet, .is_ftdi = is_ftdi, .serial = "B-0001"});
		assert_int_equal(get_descriptor(rig, 1, 0), 18);
		assert_int_equal(rig->data[0], 18);
		assert_int_equal(bc_le16(rig->data + 2), speeds[i % 3].version);
		assert_int_equal(rig->data[7], speeds[i % 3].control);
		assert_int_equal(bc_le16(rig->data + 8), is_ftdi ? 0x0403 : 0x1209);
		assert_int_equal(bc_le16(rig->data + 10), is_ftdi ? 0x6014 : 0x0001);
		assert_int_equal(rig->data[17], 1);
		uint8_t serial = rig->data[16];
		assert_text(rig, 1, "buscap");
		assert_text(rig, 2, "bus capture board (simulated)");
		assert_text(rig, serial, "B-0001");
		assert_int_equal(get_descriptor(rig, 3, 0), 4);
		assert_int_equal(get_descriptor(rig, 3, 9), 0);

		size_t n = get_descriptor(rig, 2, 0);
		assert_int_equal(bc_le16(rig->data + 2), n);
		assert_int_equal(rig->data[4], 1);
		struct walk w = walk(rig->data, n);
		assert_int_equal(w.settings, 1);
		assert_int_equal(w.interface[5], 0xFF);
		assert_int_equal(w.interface[4], w.endpoints);
		assert_int_equal(w.endpoints, is_ftdi ? 2 : 1);
		assert_int_equal(w.companions, packet == 1024 ? w.endpoints : 0);
		assert_int_equal(w.endpoint[2], BOARD_ENDPOINT);
		assert_int_equal(w.endpoint[3], 2);
		assert_int_equal(bc_le16(w.endpoint + 4), packet);

		assert_int_equal(get_descriptor(rig, 6, 0), packet == 512 ? 10 : 0);
		assert_int_equal(get_descriptor(rig, 7, 0) != 0, packet == 512);
		n = get_descriptor(rig, 15, 0);
		assert_int_equal(n, packet == 1024 ? 22 : 0);
		if (n != 0)
			assert_int_equal(bc_le16(rig->data + 2), n);
	}
}

TEST_RIG(get_info_describes_the_board)
{
	static const uint8_t zeros[32];

	open_board(rig, &(struct board_options){.serial = "XY"});
	assert_int_equal(control(rig, 0xC1, 1, 0, 0, 64), 64);
	assert_int_equal(bc_le32(rig->data), 1);
	assert_int_equal(bc_le32(rig->data + 4), BC_SIM_CLOCK_HZ);
	assert_int_equal(bc_le32(rig->data + 8), 0);
	assert_int_equal(bc_le32(rig->data + 12), 524288);
	assert_memory_equal(rig->data + 16, "sim-1.0\0\0\0\0\0\0\0\0", 16);
	assert_memory_equal(rig->data + 32, "XY", 2);
	assert_memory_equal(rig->data + 34, zeros, 30);
	assert_int_equal(control(rig, 0xC1, 1, 0, 0, 10), 10);
	assert_int_equal(control(rig, 0xC1, 1, 0, 0, 1000), 64);
	assert_int_equal(control(rig, 0xC1, 1, 1, 0, 64), -EPIPE);
	assert_int_equal(control(rig, 0xC1, 1, 0, 1, 64), -EPIPE);
	assert_int_equal(control(rig, 0xC0, 1, 0, 0, 64), -EPIPE);
	assert_int_equal(control(rig, 0x41, 1, 0, 0, 0), -EPIPE);
	assert_int_equal(control(rig, 0xC1, 2, 0, 0, 0), -EPIPE);
	assert_int_equal(control(rig, 0x41, 2, 0, 0, 1), -EPIPE);
	assert_int_equal(board_sent(rig->board).starts, 0);
}

TEST_RIG(standard_requests_are_answered)
{
	open_board(rig, &(struct board_options){0});
	assert_int_equal(control(rig, 0x80, 8, 0, 0, 1), 1);
	assert_int_equal(rig->data[0], 0);
	assert_int_equal(control(rig, 0x00, 9, 1, 0, 0), 0);
	assert_int_equal(control(rig, 0x00, 9, 2, 0, 0), -EPIPE);
	assert_int_equal(control(rig, 0x80, 8, 0, 0, 1), 1);
	assert_int_equal(rig->data[0], 1);
	assert_int_equal(control(rig, 0x81, 10, 0, 0, 1), 1);
	assert_int_equal(rig->data[0], 0);
	assert_int_equal(control(rig, 0x01, 11, 0, 0, 0), 0);
	assert_int_equal(control(rig, 0x01, 11, 1, 0, 0), -EPIPE);
	assert_int_equal(control(rig, 0x01, 11, 0, 1, 0), -EPIPE);
	assert_int_equal(control(rig, 0x80, 0, 0, 0, 2), 2);
	assert_int_equal(rig->data[0], 0);
	command(rig, "self-powered on");
	assert_int_equal(control(rig, 0x80, 0, 0, 0, 2), 2);
	assert_int_equal(rig->data[0], 1);
	assert_int_equal(control(rig, 0x02, 3, 0, BOARD_ENDPOINT, 0), 0);
	assert_int_equal(transfer(rig), -EPIPE);
	assert_int_equal(control(rig, 0x02, 1, 0, 0x05, 0), -EPIPE);
	clear_halt(rig);
	assert_int_equal(transfer(rig), BOARD_NAK);
	assert_int_equal(control(rig, 0x80, 6, 0x2100, 0, 64), -EPIPE);
	assert_int_equal(control(rig, 0xA0, 6, 0x0100, 0, 64), -EPIPE);
}
