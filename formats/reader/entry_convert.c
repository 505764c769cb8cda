#include "formats/reader/entry_convert.h"

void bc_entry_converter_init(struct bc_entry_converter *fit, enum bc_format target,
	const struct bc_format_options *target_options)
{
	*fit = (struct bc_entry_converter){.holds = bc_format_info(target)->holds,
		.needs = bc_format_info(target)->needs,
		.keep_invalid = target_options->keep_invalid};
}

void bc_entry_convert_batch(
	struct bc_entry_converter *fit, const struct bc_entry *entries, size_t count)
{
	fit->at = entries;
	fit->count = count;
}

static void note(struct bc_entry_converter *fit, uint64_t *counts, const struct bc_entry *entry,
	uint32_t lost)
{
	if (fit->lost == NULL) {
		fit->lost = entry;
		fit->lost_traits = lost;
	}
	for (; lost != 0; lost &= lost - 1)
		counts[__builtin_ctz(lost)]++;
}

/* What of an entry the target can't hold. An invalid cycle is the sample's, unless it is kept. */
static uint32_t lacking(const struct bc_entry_converter *fit, const struct bc_entry *entry)
{
	uint32_t traits = bc_entry_traits(entry);
	uint32_t holds = fit->holds;

	if ((traits & BC_CAN_INVALID) != 0 && (traits & BC_HAS_SAMPLE) != 0 &&
		(holds & BC_HAS_SAMPLE) == 0 && !fit->keep_invalid)
		holds &= ~(uint32_t)BC_CAN_INVALID;
	return traits & ~holds;
}

/* A reference of no size, where there must be one; a line of the target's own stands as it is. */
static bool is_too_bare(const struct bc_entry_converter *fit, const struct bc_entry *entry)
{
	return fit->needs != 0 && entry->kind == BC_ENTRY_REFERENCE && entry->size == 0 &&
	       entry->line.at == NULL;
}

/* Turns a reference into what the target can hold. Returns how many it became. */
static size_t reduce(
	struct bc_entry_converter *fit, struct bc_entry *out, const struct bc_entry *entry)
{
	uint32_t lost = lacking(fit, entry);
	uint32_t types = lost & BC_TYPES;
	int plain = bc_ref_type_plain(entry->type);
	size_t n = 1;

	if ((lost & BC_CAN_REFERENCE) != 0) {
		note(fit, fit->left_out, entry, BC_CAN_REFERENCE);
		return 0;
	}
	/* A type that is a letter only, or a kind of access that has no simpler one. */
	if (entry->type == BC_REF_LETTER && (lost & BC_HAS_LETTER) != 0) {
		note(fit, fit->left_out, entry, BC_HAS_LETTER);
		return 0;
	}
	if (types != 0 && (plain < 0 || plain == entry->type)) {
		note(fit, fit->left_out, entry, types);
		return 0;
	}
	if (is_too_bare(fit, entry)) {
		note(fit, fit->left_out, entry, BC_HAS_SIZE);
		return 0;
	}
	note(fit, fit->reduced, entry, lost);
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

/* Turns an entry that doesn't stand in the target as it is into those that do. */
static size_t convert(struct bc_entry_converter *fit, const struct bc_entry *entry)
{
	struct bc_entry references[BC_REFERENCES_MAX];
	uint32_t kind = lacking(fit, entry) & BC_KINDS;
	size_t made = 0;

	if (entry->kind == BC_ENTRY_REFERENCE)
		return reduce(fit, fit->made, entry);
	size_t n = (fit->holds & BC_CAN_REFERENCE) != 0 ? bc_entry_references(references, entry)
							: 0;
	/* Steps of a macro-op that touch no memory are no reference, and yet not left out. */
	bool is_reported = n != 0 || entry->kind == BC_ENTRY_UOP;
	note(fit,
		is_reported && (fit->holds & BC_CAN_REFERENCE) != 0 ? fit->reduced : fit->left_out,
		entry, kind);
	for (size_t i = 0; i < n; i++) {
		if (lacking(fit, &references[i]) == 0 && !is_too_bare(fit, &references[i]))
			fit->made[made++] = references[i];
		else
			made += reduce(fit, fit->made + made, &references[i]);
	}
	return made;
}

size_t bc_entry_converter_next(struct bc_entry_converter *fit, const struct bc_entry **run)
{
	while (fit->count != 0) {
		size_t n = 0;
		uint32_t lost = 0;
		/* As many as stand in the target as they are, but for fields. */
		while (n < fit->count) {
			lost = lacking(fit, &fit->at[n]);
			if ((lost & ~(uint32_t)BC_FIELDS) != 0 ||
				((lost & BC_HAS_LETTER) != 0 && fit->at[n].type == BC_REF_LETTER) ||
				is_too_bare(fit, &fit->at[n]))
				break;
			if (lost != 0)
				note(fit, fit->reduced, &fit->at[n], lost);
			n++;
		}
		*run = fit->at;
		fit->at += n;
		fit->count -= n;
		if (n != 0)
			return n;
		n = convert(fit, fit->at);
		fit->at++;
		fit->count--;
		*run = fit->made;
		if (n != 0)
			return n;
	}
	return 0;
}
