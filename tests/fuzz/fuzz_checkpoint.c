/* fuzz_checkpoint.c - any bytes in place of a checkpoint of one rank: the manifest, a zero byte, the rank's
 * file. The manifest's hash is corrected, as a stranger could; the file's hashes are not checked. */
#include "base/hash.h"
#include "base/st_write.h"
#include "checkpoints/checkpoint_folder.h"
#include "checkpoints/shards.h"

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(const char *path, const void *data, size_t size) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) abort();
}

/* Writes the manifest with the hash that manifest.c computes; text that is not JSON is written as it is. */
static void put_manifest(const char *path, const void *text, size_t size) {
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(root)) {
        put(path, text, size);
        json_decref(root);
        return;
    }
    json_object_del(root, "hash");
    char *all = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    if (all) json_object_set_new(root, "hash", json_string(hp_hash_bytes(all, strlen(all)).hex));
    free(all);
    all = json_dumps(root, 0);
    put(path, all ? all : "", all ? strlen(all) : 0);
    free(all);
    json_decref(root);
}

static void check(hp_status s, const hp_error *err) {
    if (s != HP_OK && (s != HP_EDATA || !err->text[0])) abort();
    for (const char *c = err->text; *c; c++)
        if (*c < ' ' || *c > '~') abort();
}

static void read_all(const hp_shards *s) {
    hp_error err = {0};
    for (int32_t kind = 0; kind < HP_STATE_KINDS; kind++)
        for (const char *name = NULL; (name = hp_shards_next(s, kind, name));) {
            int64_t dim[HP_ST_MAX_DIM], missing;
            int32_t n;
            double out[64];
            check(hp_shards_shape(s, kind, name, dim, &n, &err), &err);
            check(hp_shards_read(s, kind, name, 0, 64, HP_SHARDS_ALL, HP_F64, out, &missing, &err), &err);
            check(hp_shards_read(s, kind, name, INT64_MAX - 64, 64, 0, HP_F64, out, &missing, &err), &err);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char dir[] = "/dev/shm/fuzz-checkpoint-XXXXXX";
    const uint8_t *end = memchr(data, 0, size);
    if (!end) return 0;
    if (!mkdtemp(dir)) abort();
    hp_arena *a = hp_arena_new();
    const char *path = hp_checkpoint_path(a, dir, 1, false), *file = hp_checkpoint_file(a, path, 0);
    const char *manifest = hp_arena_printf(a, "%s/%s", path, HP_MANIFEST);
    mkdir(path, 0777);
    put_manifest(manifest, data, (size_t)(end - data));
    put(file, end + 1, size - (size_t)(end - data) - 1);
    hp_manifest m;
    hp_error err = {0};
    hp_status s = hp_checkpoint_read(a, dir, 1, &m, &err);
    check(s, &err);
    hp_shards *shards = NULL;
    if (s == HP_OK && m.ranks == 1) {
        check(hp_checkpoint_verify(a, dir, &m, 0, 1, &err), &err);
        s = hp_shards_open(dir, &m, &shards, &err);
        check(s, &err);
        if (s == HP_OK) read_all(shards);
    }
    hp_shards_close(shards);
    unlink(manifest);
    unlink(file);
    if (rmdir(path) != 0 || rmdir(dir) != 0) abort();
    hp_arena_free(a);
    return 0;
}
