/* kept.c - plans with kernels that cuDNN compiled, kept as its JSON in the user's cache. Such a plan takes
 * 0.7 to 1.8 s of CPU to build, but only 1 to 3 ms to make from its text of 70 to 110 kB, which contains the
 * kernel. Measured with cuDNN 9.19 and a stand-in for the driver's loader. Each has its own file, so that a
 * new one costs only its own size. */
#include "exec/cuda/dnn/engine.h"
#include "base/hash.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char suffix[] = ".plan";

static uint64_t hash_of(const char *text, uint64_t seed) {
    return hp_hash64(text, strlen(text), seed);
}

static void path_of(const hp_dnn *d, const hp_dnn_engine *e, char *out, size_t n) {
    char rest[32];
    char *choice = json_dumps(e->choice, JSON_COMPACT | JSON_SORT_KEYS);
    HP_ASSERT(choice);
    snprintf(rest, sizeof rest, "-%016llx%s", (unsigned long long)hash_of(choice, hash_of(e->key, 0)),
             suffix);
    free(choice);
    hp_dnn_cache_path(d, rest, out, n);
}

/* --- one plan --- */

char *hp_dnn_plan_text(cudnnBackendDescriptor_t plan) {
    static const cudnnBackendAttributeName_t JSON = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
    int64_t n = 0;
    if (cudnnBackendGetAttribute(plan, JSON, CUDNN_TYPE_CHAR, 0, &n, NULL) || n < 1 || n > HP_DNN_MOST_FILE)
        return NULL;
    char *text = calloc((size_t)n + 1, 1);
    HP_ASSERT(text);
    if (!cudnnBackendGetAttribute(plan, JSON, CUDNN_TYPE_CHAR, n, &n, text)) return text;
    free(text);
    return NULL;
}

/* Names everything that the plan depends on. A checksum keeps corrupted text away from cuDNN. */
static json_t *document(const hp_dnn *d, const hp_dnn_engine *e, const char *plan) {
    return json_pack("{s:s, s:I, s:s, s:O, s:I, s:s}", "gpu", d->gpu, "cudnn", (json_int_t)cudnnGetVersion(),
                     "key", e->key, "choice", e->choice, "sum", (json_int_t)hash_of(plan, 0), "plan", plan);
}

char *hp_dnn_kept_text(const hp_dnn *d, const hp_dnn_engine *e) {
    char path[HP_DNN_PATH];
    path_of(d, e, path, sizeof path);
    json_t *o = hp_dnn_cache_get(path);
    const char *plan = json_string_value(json_object_get(o, "plan"));
    json_t *should = plan ? document(d, e, plan) : NULL;
    char *text = should && json_equal(o, should) ? strdup(plan) : NULL;
    json_decref(should);
    json_decref(o);
    return text;
}

/* --- all of them --- */

typedef struct shelf {
    int64_t bytes, oldest_s;
    char oldest[HP_DNN_PATH]; /* name of the file with that time; "": none */
} shelf;

static void count(shelf *s, const char *path) {
    struct stat is;
    if (stat(path, &is) != 0) return;
    s->bytes += is.st_size;
    if (*s->oldest && is.st_mtime >= s->oldest_s) return;
    s->oldest_s = is.st_mtime;
    snprintf(s->oldest, sizeof s->oldest, "%s", path);
}

static bool is_plan(const char *name) {
    const size_t n = strlen(name), k = sizeof suffix - 1;
    return n > k && strcmp(name + n - k, suffix) == 0;
}

static shelf look(const char *folder) {
    shelf s = {.bytes = 0};
    char path[HP_DNN_PATH];
    DIR *all = opendir(folder);
    for (const struct dirent *f; all && (f = readdir(all));)
        if (is_plan(f->d_name) && snprintf(path, sizeof path, "%s/%s", folder, f->d_name) < (int)sizeof path)
            count(&s, path);
    if (all) closedir(all);
    return s;
}

/* Removes the oldest files first, whatever their GPU. */
static void make_room(const char *path, int64_t most) {
    char folder[HP_DNN_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    for (shelf s = look(folder); s.bytes > most && unlink(s.oldest) == 0;) s = look(folder);
}

void hp_dnn_kept_write(const hp_dnn *d, const hp_dnn_engine *e, int64_t most) {
    char path[HP_DNN_PATH];
    char *text = hp_dnn_plan_text(e->plan);
    if (!text) return;
    json_t *o = document(d, e, text);
    path_of(d, e, path, sizeof path);
    hp_dnn_cache_put(path, o);
    make_room(path, most);
    json_decref(o);
    free(text);
}
