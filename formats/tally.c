#include "formats/tally.h"

#include "formats/record.h"

/* A count in a lane is at most what is pending. */
#define PENDING_MAX (1u << 31)

static unsigned slot_of(uint32_t key)
{
	_Static_assert(BC_TALLY_SLOTS == 1u << 9, "the hash has nine bits");
	return (key * 0x9E3779B1u) >> 23;
}

/* What the slot has counted goes where it belongs, and the slot is free. */
static void settle_slot(struct bc_tally *t, unsigned slot)
{
	uint32_t key = t->keys[slot];
	uint64_t n = 0;

	for (unsigned lane = 0; lane < BC_TALLY_LANES; lane++) {
		n += t->counts[lane][slot];
		t->counts[lane][slot] = 0;
	}
	t->types[key & 255] += n;
	t->type_bytes[key & 255] += n * (key >> 8 & 255);
	t->bytes += n * (key >> 8 & 255);
	t->sizes[key >> 8 & 255] += n;
	t->attrs[key >> 16 & 255] += n;
	t->procs[key >> 24] += n;
}

void bc_tally_settle(struct bc_tally *t)
{
	if (t->pending == 0)
		return;
	for (unsigned slot = 0; slot < BC_TALLY_SLOTS; slot++)
		settle_slot(t, slot);
	t->pending = 0;
}

static void count_one(struct bc_tally *t, uint32_t key)
{
	unsigned slot = slot_of(key);

	if (t->keys[slot] != key) {
		settle_slot(t, slot);
		t->keys[slot] = key;
	}
	t->counts[0][slot]++;
}

static void count_records(struct bc_tally *t, const uint8_t *p, size_t n)
{
	for (; n >= BC_TALLY_LANES; n -= BC_TALLY_LANES, p += BC_TALLY_LANES * BC_RECORD_BYTES) {
		uint32_t a = bc_le32(p + 4);
		uint32_t b = bc_le32(p + BC_RECORD_BYTES + 4);
		uint32_t c = bc_le32(p + 2 * BC_RECORD_BYTES + 4);
		uint32_t d = bc_le32(p + 3 * BC_RECORD_BYTES + 4);
		unsigned slot_a = slot_of(a);
		unsigned slot_b = slot_of(b);
		unsigned slot_c = slot_of(c);
		unsigned slot_d = slot_of(d);
		if (__builtin_expect(((t->keys[slot_a] ^ a) | (t->keys[slot_b] ^ b) |
					     (t->keys[slot_c] ^ c) | (t->keys[slot_d] ^ d)) != 0,
			    0)) {
			count_one(t, a);
			count_one(t, b);
			count_one(t, c);
			count_one(t, d);
			continue;
		}
		t->counts[0][slot_a]++;
		t->counts[1][slot_b]++;
		t->counts[2][slot_c]++;
		t->counts[3][slot_d]++;
	}
	for (; n != 0; n--, p += BC_RECORD_BYTES)
		count_one(t, bc_le32(p + 4));
}

void bc_tally_records(struct bc_tally *t, const uint8_t *records, size_t n)
{
	t->references += n;
	while (n != 0) {
		size_t part = n < PENDING_MAX - t->pending ? n : PENDING_MAX - t->pending;
		count_records(t, records, part);
		t->pending += (uint32_t)part;
		if (t->pending == PENDING_MAX)
			bc_tally_settle(t);
		records += part * BC_RECORD_BYTES;
		n -= part;
	}
}

static void count_large(struct bc_tally *t, uint32_t size)
{
	for (size_t i = 0; i < t->large_count; i++) {
		if (t->large[i].size != size)
			continue;
		t->large[i].references++;
		return;
	}
	if (t->large_count == BC_TALLY_LARGE) {
		t->large_others++;
		return;
	}
	t->large[t->large_count].size = size;
	t->large[t->large_count++].references = 1;
}

void bc_tally_reference(struct bc_tally *t, const struct bc_entry *reference)
{
	unsigned type = reference->type;

	t->references++;
	t->types[type]++;
	if (type == BC_REF_LETTER)
		t->letters[(uint8_t)reference->letter]++;
	if ((reference->has & BC_HAS_SIZE) == 0) {
		t->without_size++;
	} else {
		t->bytes += reference->size;
		t->type_bytes[type] += reference->size;
		if (reference->size < 256)
			t->sizes[reference->size]++;
		else
			count_large(t, reference->size);
	}
	if ((reference->has & BC_HAS_ATTR) != 0)
		t->attrs[reference->attr]++;
	else
		t->without_attr++;
	if ((reference->has & BC_HAS_PROC) != 0)
		t->procs[reference->proc]++;
	else
		t->without_proc++;
}
