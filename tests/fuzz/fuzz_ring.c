/* fuzz_ring.c - any bytes in place of a rank's ring and of the board of a node: an error with a message, or
 * readable content. */
#define _GNU_SOURCE /* memfd_create */
#include "tests/fuzz/fuzz_file.h"

#include "traces/faults/board.h"
#include "traces/trace_ring.h"

static void check(hp_status s, const hp_error *err) {
    if (s != HP_OK && (s != HP_EDATA || !err->text[0])) abort();
}

static volatile int64_t sum;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/fuzz-%d.ring", (int)getpid());
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) abort();
    hp_ring_data ring;
    hp_board_entry entry[3];
    hp_error err = {0};
    const hp_status s = hp_ring_read(path, &ring, &err);
    check(s, &err);
    if (s == HP_OK) {
        for (int64_t i = 0; i < ring.n_span; i++) sum = sum ^ ring.span[i].t1_ns;
        for (int64_t i = 0; i < ring.n_sample; i++) sum = sum ^ ring.sample[i].t_ns;
        hp_ring_free(&ring);
    }
    check(hp_board_read(path, 3, entry, &err), &err);
    unlink(path);
    return 0;
}
