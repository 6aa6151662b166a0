/* fuzz_text.h - the fuzzer's bytes as a text, up to the first zero byte. */
#ifndef HP_TESTS_FUZZ_TEXT_H
#define HP_TESTS_FUZZ_TEXT_H

#include "base/arena.h"
#include "base/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline char *fuzz_text(hp_arena *a, const uint8_t *data, size_t size) {
    char *text = hp_arena_alloc(a, size + 1);
    if (size) memcpy(text, data, size);
    return text;
}

/* One of two codes, with a message. */
static inline void fuzz_refused(hp_status s, hp_status a, hp_status b, const hp_error *err) {
    if ((s != a && s != b) || !err->text[0]) abort();
}

#endif
