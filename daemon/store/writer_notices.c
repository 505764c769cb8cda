#include "daemon/store/writer_notices.h"

#include <stdlib.h>

void bc_writer_news_add(struct bc_writer_news_list *list, struct bc_writer_news *news)
{
	news->next = NULL;
	if (list->first == NULL)
		list->first = news;
	else
		list->last->next = news;
	list->last = news;
}

void bc_writer_news_move(struct bc_writer_news_list *to, struct bc_writer_news_list *from)
{
	if (from->first == NULL)
		return;
	if (to->first == NULL)
		to->first = from->first;
	else
		to->last->next = from->first;
	to->last = from->last;
	*from = (struct bc_writer_news_list){.first = NULL};
}

void bc_writer_news_free(struct bc_writer_news *first)
{
	while (first != NULL) {
		struct bc_writer_news *next = first->next;
		free(first);
		first = next;
	}
}
