/* node.c - which ranks share a node. */
#include "exec/comm/node.h"

#include "base/hash.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

uint64_t hp_node_id(void) {
    char text[HOST_NAME_MAX + 64] = "";
    gethostname(text, HOST_NAME_MAX);
    const size_t n = strlen(text);
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t more = fd < 0 ? 0 : read(fd, text + n, sizeof text - n - 1);
    if (fd >= 0) close(fd);
    return hp_hash64(text, n + (more > 0 ? (size_t)more : 0), 0);
}
