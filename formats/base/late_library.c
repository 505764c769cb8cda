#include "formats/base/late_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "formats/base/text.h"

static bool load_library(const struct bc_late_library *library)
{
	void *handle = dlopen(library->name, RTLD_LAZY);

	if (handle == NULL)
		return false;
	for (size_t i = 0; library->functions[i] != NULL; i++) {
		void *symbol = dlsym(handle, library->functions[i]);
		if (symbol == NULL)
			return false;
		/* C has no conversion from an object's pointer to a function's. */
		memcpy((void **)library->pointers + i, &symbol, sizeof(symbol));
	}
	return true;
}

bool bc_late_library_load(struct bc_late_library *library, char *err, size_t errlen)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	library->is_loaded = library->is_loaded || load_library(library) ||
			     bc_fail(err, errlen, "%s; install or update the package %s", dlerror(),
				     library->package);
	bool is_loaded = library->is_loaded;
	pthread_mutex_unlock(&lock);
	return is_loaded;
}
