#include "daemon/store/writer_notices.h"

#include <stdlib.h>

void bc_writer_notices_add(struct bc_writer_notice_list *list, struct bc_writer_notice *notice)
{
	notice->next = NULL;
	if (list->first == NULL)
		list->first = notice;
	else
		list->last->next = notice;
	list->last = notice;
}

void bc_writer_notices_move(struct bc_writer_notice_list *to, struct bc_writer_notice_list *from)
{
	if (from->first == NULL)
		return;
	if (to->first == NULL)
		to->first = from->first;
	else
		to->last->next = from->first;
	to->last = from->last;
	*from = (struct bc_writer_notice_list){.first = NULL};
}

void bc_writer_notices_free(struct bc_writer_notice *first)
{
	while (first != NULL) {
		struct bc_writer_notice *next = first->next;
		free(first);
		first = next;
	}
}
