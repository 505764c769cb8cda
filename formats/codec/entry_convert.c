#include "formats/codec/entry_convert.h"

void bc_entry_converter_init(struct bc_entry_converter *c, enum bc_format target,
	const struct bc_format_options *target_options)
{
	*c = (struct bc_entry_converter){.holds = bc_format_info(target)->holds,
		.needs = bc_format_info(target)->needs,
		.keep_invalid = target_options->keep_invalid};
}

void bc_entry_convert_batch(
	struct bc_entry_converter *c, const struct bc_entry *entries, size_t count)
{
	c->at = entries;
	c->count = count;
}

static void count_loss(
	struct bc_entry_converter *c, uint64_t *counts, const struct bc_entry *entry, uint32_t lost)
{
	if (c->lost == NULL) {
		c->lost = entry;
		c->lost_traits = lost;
	}
	for (; lost != 0; lost &= lost - 1)
		counts[__builtin_ctz(lost)]++;
}

/* Traits of an entry that the target cannot hold. Invalid cycles need samples, unless kept on
 * request. */
static uint32_t missing_traits(const struct bc_entry_converter *c, const struct bc_entry *entry)
{
	uint32_t traits = bc_entry_traits(entry);
	uint32_t holds = c->holds;

	if ((traits & BC_CAN_INVALID) != 0 && (traits & BC_HAS_SAMPLE) != 0 &&
		(holds & BC_HAS_SAMPLE) == 0 && !c->keep_invalid)
		holds &= ~(uint32_t)BC_CAN_INVALID;
	return traits & ~holds;
}

/* A reference without a size for a target that requires one. A line in the target's own format
 * passes. */
static bool lacks_size(const struct bc_entry_converter *c, const struct bc_entry *entry)
{
	return c->needs != 0 && entry->kind == BC_ENTRY_REFERENCE && entry->size == 0 &&
	       entry->line.at == NULL;
}

/* Reduces a reference to what the target can hold. Returns the number of references in `out`. */
static size_t reduce_reference(
	struct bc_entry_converter *c, struct bc_entry *out, const struct bc_entry *entry)
{
	uint32_t lost = missing_traits(c, entry);
	uint32_t types = lost & BC_TYPES;
	int plain = bc_ref_type_plain(entry->type);
	size_t n = 1;

	if ((lost & BC_CAN_REFERENCE) != 0) {
		count_loss(c, c->left_out, entry, BC_CAN_REFERENCE);
		return 0;
	}
	/* A type that is only a letter, or one that cannot be reduced. */
	if (entry->type == BC_REF_LETTER && (lost & BC_HAS_LETTER) != 0) {
		count_loss(c, c->left_out, entry, BC_HAS_LETTER);
		return 0;
	}
	if (types != 0 && (plain < 0 || plain == entry->type)) {
		count_loss(c, c->left_out, entry, types);
		return 0;
	}
	if (lacks_size(c, entry)) {
		count_loss(c, c->left_out, entry, BC_HAS_SIZE);
		return 0;
	}
	count_loss(c, c->reduced, entry, lost);
	out[0] = *entry;
	if (types != 0) {
		out[0].type = (uint16_t)plain;
		if (entry->type == BC_REF_MODIFY) {
			out[1] = out[0];
			out[1].type = BC_REQ_MEMWRITE;
			out[1].is_continued = true;
			n = 2;
		}
	}
	return n;
}

/* Converts an entry that the target cannot hold directly. */
static size_t convert_entry(struct bc_entry_converter *c, const struct bc_entry *entry)
{
	struct bc_entry references[BC_REFERENCES_MAX];
	uint32_t kind = missing_traits(c, entry) & BC_KINDS;
	size_t made = 0;

	if (entry->kind == BC_ENTRY_REFERENCE)
		return reduce_reference(c, c->made, entry);
	size_t n = (c->holds & BC_CAN_REFERENCE) != 0 ? bc_entry_references(references, entry) : 0;
	/* A micro-op without a memory access yields no reference, but does not count as left out.
	 */
	bool is_represented = n != 0 || entry->kind == BC_ENTRY_UOP;
	count_loss(c,
		is_represented && (c->holds & BC_CAN_REFERENCE) != 0 ? c->reduced : c->left_out,
		entry, kind);
	for (size_t i = 0; i < n; i++) {
		if (missing_traits(c, &references[i]) == 0 && !lacks_size(c, &references[i]))
			c->made[made++] = references[i];
		else
			made += reduce_reference(c, c->made + made, &references[i]);
	}
	return made;
}

size_t bc_entry_converter_next(struct bc_entry_converter *c, const struct bc_entry **run)
{
	while (c->count != 0) {
		size_t n = 0;
		uint32_t lost = 0;
		/* As many as the target can hold directly, except for some fields. */
		while (n < c->count) {
			lost = missing_traits(c, &c->at[n]);
			if ((lost & ~(uint32_t)BC_FIELDS) != 0 ||
				((lost & BC_HAS_LETTER) != 0 && c->at[n].type == BC_REF_LETTER) ||
				lacks_size(c, &c->at[n]))
				break;
			if (lost != 0)
				count_loss(c, c->reduced, &c->at[n], lost);
			n++;
		}
		*run = c->at;
		c->at += n;
		c->count -= n;
		if (n != 0)
			return n;
		n = convert_entry(c, c->at);
		c->at++;
		c->count--;
		*run = c->made;
		if (n != 0)
			return n;
	}
	return 0;
}
