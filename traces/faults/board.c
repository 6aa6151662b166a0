/* board.c - reads a board while others write it. */
#include "traces/faults/board.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

hp_status hp_board_read(const char *path, int ranks, hp_board_entry *entry, hp_error *err) {
    struct stat st;
    const size_t bytes = hp_board_bytes(ranks);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return hp_fail(err, HP_EDATA, "cannot open %s: %s", path, strerror(errno));
    const bool fits = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size >= bytes;
    hp_board_row *row = fits ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    close(fd);
    if (row == MAP_FAILED) return hp_fail(err, HP_EDATA, "%s is not the board of %d ranks", path, ranks);
    for (int r = 0; r < ranks; r++) {
        const int64_t doing = atomic_load(&row[r + 1].doing);
        entry[r] = (hp_board_entry){.here = atomic_load(&row[r + 1].host) != 0,
                                    .beat = atomic_load(&row[r + 1].beat),
                                    .pid = atomic_load(&row[r + 1].pid),
                                    .begin = atomic_load(&row[r + 1].begin),
                                    .reads = atomic_load(&row[r + 1].reads) > 0,
                                    .task = doing < 0 ? -1 : (int32_t)(uint32_t)doing,
                                    .iter = doing < 0 ? -1 : (int32_t)(doing >> 32)};
    }
    munmap(row, bytes);
    return HP_OK;
}
