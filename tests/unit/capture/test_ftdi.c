/* Removing the status bytes at the start of each packet. */
#include <stdlib.h>
#include <string.h>

#include "capture/usb/usb_framer.h"
#include "tests/support/test.h"

#define STATUS_0 0x32
#define STATUS_1 0x60

/* Wraps `count` bytes, counting up from `from`, as the chip does: packets of packet_bytes, the
 * last one shorter. Without data there is one status-only packet. */
static size_t wrap(uint8_t *out, uint8_t from, size_t count, size_t packet_bytes)
{
	size_t at = 0;
	size_t done = 0;

	do {
		out[at++] = STATUS_0;
		out[at++] = STATUS_1;
		for (size_t i = BC_FTDI_STATUS_BYTES; i < packet_bytes && done < count; i++)
			out[at++] = (uint8_t)(from + done++);
	} while (done < count);
	return at;
}

static void check(const uint8_t *bytes, uint8_t from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(bytes[i], (uint8_t)(from + i));
}

TEST(every_length_is_stripped_of_its_status_bytes)
{
	static const size_t packets[] = {8, 64, 512, 1024};

	for (size_t p = 0; p < COUNT_OF(packets); p++) {
		for (size_t count = 0; count <= 3 * packets[p]; count++) {
			uint8_t whole[4200];
			size_t bytes = wrap(whole, 7, count, packets[p]);
			/* Of exact length, so that a sanitizer detects any access beyond it. */
			uint8_t *transfer = malloc(bytes);
			assert_non_null(transfer);
			memcpy(transfer, whole, bytes);
			assert_int_equal(bc_ftdi_strip(transfer, bytes, packets[p]), count);
			check(transfer, 7, count);
			free(transfer);
		}
	}
}

/* A stream in several transfers, each ended by a short packet. */
TEST(every_split_into_two_transfers_gives_the_same_stream)
{
	for (size_t packet = 8; packet <= 64; packet *= 8) {
		for (size_t cut = 0; cut <= 200; cut++) {
			uint8_t transfer[512];
			uint8_t stream[200];
			size_t bytes = wrap(transfer, 0, cut, packet);
			size_t n = bc_ftdi_strip(transfer, bytes, packet);
			assert_int_equal(n, cut);
			memcpy(stream, transfer, n);
			bytes = wrap(transfer, (uint8_t)cut, 200 - cut, packet);
			n = bc_ftdi_strip(transfer, bytes, packet);
			assert_int_equal(n, 200 - cut);
			memcpy(stream + cut, transfer, n);
			check(stream, 0, 200);
		}
	}
}

/* A transfer cut off anywhere gives the data up to there. */
TEST(every_prefix_of_a_transfer_gives_its_part_of_the_stream)
{
	for (size_t packet = 8; packet <= 64; packet *= 8) {
		uint8_t whole[512];
		size_t bytes = wrap(whole, 0, 150, packet);
		for (size_t cut = 0; cut <= bytes; cut++) {
			uint8_t *transfer = malloc(cut + 1);
			size_t rest = cut % packet;
			size_t wanted = cut / packet * (packet - BC_FTDI_STATUS_BYTES) +
					(rest > BC_FTDI_STATUS_BYTES ? rest - BC_FTDI_STATUS_BYTES
								     : 0);
			assert_non_null(transfer);
			memcpy(transfer, whole, cut);
			assert_int_equal(bc_ftdi_strip(transfer, cut, packet), wanted);
			check(transfer, 0, wanted);
			free(transfer);
		}
	}
}

/* A packet without data may be anywhere except before a longer one of its transfer. */
TEST(status_only_packets_give_no_data)
{
	uint8_t transfer[3 * 4] = {0x32, 0x60, 1, 2, 0x32, 0x60, 3, 4, 0x32, 0x60};

	assert_int_equal(bc_ftdi_strip(transfer, 10, 4), 4);
	check(transfer, 1, 4);
	transfer[0] = 0x32;
	assert_int_equal(bc_ftdi_strip(transfer, 2, 512), 0);
	assert_int_equal(bc_ftdi_strip(transfer, 1, 512), 0);
	assert_int_equal(bc_ftdi_strip(transfer, 0, 512), 0);
}
