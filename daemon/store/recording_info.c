#include "daemon/store/recording_info.h"

#include <string.h>

#include "formats/segment/segment_header.h"

void bc_recording_info_init(struct bc_recording_info *recording)
{
	memset(recording, 0, sizeof(*recording));
	pthread_mutex_init(&recording->lock, NULL);
}

void bc_recording_info_destroy(struct bc_recording_info *recording)
{
	pthread_mutex_destroy(&recording->lock);
}

/* Merges into a copy, so that the writer never waits for more than a memcpy. */
bool bc_recording_info_note(struct bc_recording_info *recording, const char *more,
	char note[BC_METADATA_MAX], char *err, size_t errlen)
{
	char all[BC_METADATA_MAX];

	memcpy(all, recording->header.metadata, sizeof(all));
	if (!bc_metadata_read(note, more, err, errlen) ||
		!bc_metadata_merge(all, note, err, errlen))
		return false;
	pthread_mutex_lock(&recording->lock);
	memcpy(recording->header.metadata, all, sizeof(all));
	pthread_mutex_unlock(&recording->lock);
	return true;
}

void bc_recording_info_header(
	const struct bc_recording_info *recording, struct bc_segment_header *header)
{
	/* The pipeline passes recordings as const; the lock is not part of their value. */
	pthread_mutex_t *lock = (pthread_mutex_t *)&recording->lock;

	pthread_mutex_lock(lock);
	*header = recording->header;
	pthread_mutex_unlock(lock);
}
