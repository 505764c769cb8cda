#include "formats/stats/tally.h"

#include "formats/bus/record.h"

/* A single counter cannot exceed the number of pending records. */
#define PENDING_MAX (1u << 31)

static unsigned slot_of(uint32_t key)
{
	_Static_assert(BC_TALLY_SLOTS == 1u << 9, "the hash has nine bits");
	return (key * 0x9E3779B1u) >> 23;
}

/* Adds the counts of a slot to the totals, field by field. */
static void settle_slot(struct bc_tally *t, struct bc_tally_slot *slot)
{
	uint32_t key = slot->key;
	uint64_t n = 0;

	for (unsigned i = 0; i < BC_TALLY_COUNTERS; i++) {
		n += slot->counts[i];
		slot->counts[i] = 0;
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
		settle_slot(t, &t->slots[slot]);
	t->pending = 0;
}

static __attribute__((noinline, cold)) void reassign_slot(
	struct bc_tally *t, struct bc_tally_slot *slot, uint32_t key)
{
	settle_slot(t, slot);
	slot->key = key;
}

static inline void count_record(struct bc_tally *t, const uint8_t *record, unsigned i)
{
	uint32_t key = bc_le32(record + 4);
	struct bc_tally_slot *slot = &t->slots[slot_of(key)];

	if (__builtin_expect(slot->key != key, 0))
		reassign_slot(t, slot, key);
	slot->counts[i]++;
}

static void count_records(struct bc_tally *t, const uint8_t *p, size_t n)
{
	_Static_assert(BC_TALLY_COUNTERS == 4, "four at a time");
	for (; n >= BC_TALLY_COUNTERS; n -= BC_TALLY_COUNTERS) {
		count_record(t, p, 0);
		count_record(t, p + BC_RECORD_BYTES, 1);
		count_record(t, p + (size_t)2 * BC_RECORD_BYTES, 2);
		count_record(t, p + (size_t)3 * BC_RECORD_BYTES, 3);
		p += (size_t)BC_TALLY_COUNTERS * BC_RECORD_BYTES;
	}
	for (; n != 0; n--, p += BC_RECORD_BYTES)
		count_record(t, p, 0);
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
