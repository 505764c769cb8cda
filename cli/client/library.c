#include "cli/client/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static bool load(struct bc_library *library)
{
	void *handle = dlopen(library->names[0], RTLD_NOW);

	if (handle == NULL && library->names[1] != NULL)
		handle = dlopen(library->names[1], RTLD_NOW);
	if (handle == NULL)
		return false;
	for (const struct bc_library_entry *e = library->entries; e->function != NULL; e++) {
		void *symbol = dlsym(handle, e->function);
		if (symbol == NULL)
			return false;
		/* C has no conversion from an object's pointer to a function's. */
		memcpy(e->pointer, &symbol, sizeof(symbol));
	}
	return true;
}

enum bc_exit bc_library_load(struct bc_library *library, const struct bc_console *console)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	enum bc_exit code = BC_EXIT_OK;

	pthread_mutex_lock(&lock);
	if (!library->is_loaded && !load(library)) {
		bc_print_error(
			console, NULL, "can't load a library; install or update it: %s", dlerror());
		code = BC_EXIT_FAILED;
	} else {
		library->is_loaded = true;
	}
	pthread_mutex_unlock(&lock);
	return code;
}
