/* fuzz_safetensors.c - whatever bytes: an error with a printable message, or tensors that lie in the file
 * and are found by their names. */
#define _GNU_SOURCE /* memfd_create */
#include "tests/fuzz/fuzz_file.h"

#include "exec/data/weights/safetensors.h"

#include <string.h>

static void read_tensor(const hp_safetensors *st, int i) {
    const hp_st_tensor *t = hp_safetensors_tensor(st, i);
    int64_t n = 1;
    unsigned sum = 0;
    for (int k = 0; k < t->n_dim; k++) n *= t->dim[k];
    if (n != t->count || hp_safetensors_find(st, t->name) != t) abort();
    for (int64_t k = 0; k < t->count * hp_st_infos[t->dtype].bytes; k++) sum += t->data[k];
    double *out = malloc((size_t)t->count * sizeof *out + sum % 2 + 1);
    if (!out) abort();
    if (hp_st_is_real(t)) hp_st_to_f64(t, out);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    const int fd = fuzz_file(data, size, path);
    hp_safetensors *st = NULL;
    hp_error err = {0};
    const hp_status s = hp_safetensors_open(path, &st, &err);
    for (const char *c = err.text; *c; c++)
        if (*c < ' ' || *c > '~') abort();
    if (s != HP_OK && (s != HP_EDATA || !err.text[0])) abort();
    for (int i = 0; s == HP_OK && i < hp_safetensors_count(st); i++) read_tensor(st, i);
    hp_safetensors_close(st);
    close(fd);
    return 0;
}
