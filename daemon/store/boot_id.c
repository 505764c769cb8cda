#include "daemon/store/boot_id.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void bc_boot_id_read(char out[BC_BOOT_ID_BYTES])
{
	char buffer[64] = "";
	const char *text = getenv("BUSCAPD_BOOT_ID");
	size_t n = 0;

	if (text == NULL) {
		int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && read(fd, buffer, sizeof(buffer) - 1) < 0)
			buffer[0] = '\0';
		if (fd >= 0)
			close(fd);
		text = buffer;
	}
	for (; *text != '\0' && n < BC_BOOT_ID_BYTES - 1; text++)
		if (strchr("0123456789abcdef", *text) != NULL)
			out[n++] = *text;
	out[n == BC_BOOT_ID_BYTES - 1 ? n : 0] = '\0';
}
