#include "daemon/base/queue.h"
#include "tests/support/test.h"

TEST_THREADS;

TEST(items_are_popped_in_order)
{
	struct bc_queue queue;
	static char items[8];
	unsigned in = 0;
	unsigned out = 0;

	assert_int_equal(bc_queue_init(&queue, 5), 0);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 3; i++)
			bc_queue_push(&queue, &items[in++ % 8]);
		assert_int_equal(bc_queue_count(&queue), 3);
		for (int i = 0; i < 3; i++)
			assert_ptr_equal(bc_queue_pop(&queue), &items[out++ % 8]);
	}
	assert_null(bc_queue_pop_newest(&queue));
	bc_queue_destroy(&queue);
}

TEST(pop_newest_pops_the_newest_item)
{
	struct bc_queue queue;
	char a;
	char b;

	assert_int_equal(bc_queue_init(&queue, 2), 0);
	bc_queue_push(&queue, &a);
	bc_queue_push(&queue, &b);
	assert_ptr_equal(bc_queue_pop_newest(&queue), &b);
	assert_ptr_equal(bc_queue_pop_newest(&queue), &a);
	bc_queue_destroy(&queue);
}

TEST(waiting_ends_at_the_timeout_or_when_the_queue_is_closed)
{
	struct bc_queue queue;
	char a;

	assert_int_equal(bc_queue_init(&queue, 1), 0);
	assert_null(bc_queue_pop_within(&queue, 1000000));
	assert_null(bc_queue_pop_within(&queue, 0));
	bc_queue_push(&queue, &a);
	bc_queue_close(&queue);
	assert_false(bc_queue_is_over(&queue));
	assert_ptr_equal(bc_queue_pop(&queue), &a); /* items in a closed queue are still popped */
	assert_true(bc_queue_is_over(&queue));
	assert_null(bc_queue_pop(&queue));
	assert_null(bc_queue_pop_within(&queue, UINT64_C(1000000000000)));
	bc_queue_destroy(&queue);
}

/* A wake-up means something other than an item, which waits in the queue meanwhile. */
TEST(no_item_hides_a_wake_up)
{
	struct bc_queue queue;
	char a;

	assert_int_equal(bc_queue_init(&queue, 1), 0);
	bc_queue_push(&queue, &a);
	bc_queue_wake(&queue);
	bc_queue_wake(&queue);
	bc_queue_close(&queue);
	assert_null(bc_queue_pop_within(&queue, UINT64_C(1000000000000)));
	assert_false(bc_queue_is_over(&queue));
	assert_ptr_equal(bc_queue_pop_within(&queue, UINT64_C(1000000000000)), &a);
	assert_true(bc_queue_is_over(&queue));
	bc_queue_destroy(&queue);
}

#define ITEMS 20000u

struct relay {
	struct bc_queue there;
	struct bc_queue back;
};

static void *pass_on(void *context)
{
	struct relay *relay = context;
	void *item;

	while ((item = bc_queue_pop(&relay->there)) != NULL)
		bc_queue_push(&relay->back, item);
	return NULL;
}

TEST(nothing_is_lost_between_threads)
{
	static uint32_t seen[ITEMS];
	struct relay relay;
	pthread_t threads[3];

	assert_int_equal(bc_queue_init(&relay.there, ITEMS), 0);
	assert_int_equal(bc_queue_init(&relay.back, ITEMS), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, pass_on, &relay), 0);
	for (unsigned i = 0; i < ITEMS; i++)
		bc_queue_push(&relay.there, &seen[i]);
	for (unsigned i = 0; i < ITEMS; i++)
		++*(uint32_t *)bc_queue_pop(&relay.back);
	bc_queue_close(&relay.there);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < ITEMS; i++)
		assert_int_equal(seen[i], 1);
	bc_queue_destroy(&relay.there);
	bc_queue_destroy(&relay.back);
}
