/* shards.c - an index of all ranks' tensors by kind, parameter and position. Ranges are
 * assembled in blocks. */
#include "checkpoints/shards.h"

#include "base/st_read.h"
#include "checkpoints/checkpoint_folder.h"

#include <string.h>

enum { BLOCK = 4096 };

typedef struct shard {
    int32_t kind;
    const char *param;
    int64_t first, rank;
    const hp_st_tensor *tensor;
} shard;

struct hp_shards {
    hp_arena *arena;
    hp_safetensors **file;
    int64_t ranks;
    shard *shard; /* sorted */
    int n, room;
};

static int by_place(const void *x, const void *y) {
    const shard *a = x, *b = y;
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    const int name = strcmp(a->param, b->param);
    if (name) return name;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static hp_status add_file(hp_shards *s, int64_t rank, const char *dtype, const char *path, hp_error *err) {
    HP_TRY(hp_safetensors_open(path, &s->file[rank], err));
    for (int i = 0; i < hp_safetensors_count(s->file[rank]); i++) {
        char shown[64];
        shard one = {.rank = rank, .tensor = hp_safetensors_tensor(s->file[rank], i)};
        one.param = hp_state_parse(one.tensor->name, &one.kind, &one.first);
        if (!one.param || strcmp(hp_st_infos[one.tensor->dtype].name, dtype) != 0)
            return hp_fail(err, HP_EDATA, "%s: tensor '%s' is not a checkpoint's", path,
                           hp_st_printable(one.tensor->name, shown));
        HP_ROOM(s->arena, s->shard, s->n, s->room);
        s->shard[s->n++] = one;
    }
    return HP_OK;
}

hp_status hp_shards_open(const char *dir, const hp_manifest *m, hp_shards **out, hp_error *err) {
    hp_arena *a = hp_arena_new();
    hp_shards *s = HP_NEW(a, hp_shards, 1);
    *s = (hp_shards){.arena = a, .ranks = m->ranks, .file = HP_NEW(a, hp_safetensors *, m->ranks)};
    const char *path = hp_checkpoint_path(a, dir, m->step, false);
    hp_status status = HP_OK;
    for (int64_t r = 0; r < m->ranks && status == HP_OK; r++)
        status = add_file(s, r, m->dtype, hp_checkpoint_file(a, path, r), err);
    if (s->n) qsort(s->shard, (size_t)s->n, sizeof *s->shard, by_place);
    *out = status == HP_OK ? s : NULL;
    if (status != HP_OK) hp_shards_close(s);
    return status;
}

void hp_shards_close(hp_shards *s) {
    if (!s) return;
    for (int64_t r = 0; r < s->ranks; r++) hp_safetensors_close(s->file[r]);
    hp_arena_free(s->arena);
}

/* --- putting together --- */

/* Index of the parameter's first shard. */
static int find(const hp_shards *s, int32_t kind, const char *param) {
    const shard key = {.kind = kind, .param = param, .first = -1};
    int lo = 0, hi = s->n;
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (by_place(&s->shard[mid], &key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static double element(const hp_st_tensor *t, int64_t i) {
    float f;
    double d;
    if (t->dtype == HP_ST_F64) {
        memcpy(&d, t->data + i * (int64_t)sizeof d, sizeof d);
        return d;
    }
    memcpy(&f, t->data + i * (int64_t)sizeof f, sizeof f);
    return (double)f;
}

typedef struct block {
    int64_t first, count;
    double sum[BLOCK];
    int32_t copies[BLOCK];
} block;

/* A single copy keeps its bits: adding it to 0 would lose the sign of a zero. */
static void add_shard(block *b, const shard *s) {
    const int64_t end = s->first + s->tensor->count, lo = b->first > s->first ? b->first : s->first,
                  hi = b->first + b->count < end ? b->first + b->count : end;
    for (int64_t e = lo; e < hi; e++) {
        const double v = element(s->tensor, e - s->first);
        double *sum = &b->sum[e - b->first];
        *sum = b->copies[e - b->first]++ ? *sum + v : v;
    }
}

static int64_t put_block(const block *b, bool mean, hp_dtype dtype, void *out, int64_t at) {
    int64_t missing = 0;
    for (int64_t i = 0; i < b->count; i++) {
        const double v = mean && b->copies[i] > 1 ? b->sum[i] / b->copies[i] : b->sum[i];
        missing += b->copies[i] == 0;
        if (dtype == HP_F64)
            ((double *)out)[at + i] = v;
        else
            ((float *)out)[at + i] = (float)v;
    }
    return missing;
}

hp_status hp_shards_read(const hp_shards *s, int32_t kind, const char *param, int64_t first, int64_t count,
                         int64_t rank, hp_dtype dtype, void *out, int64_t *missing, hp_error *err) {
    HP_ASSERT(dtype == HP_F32 || dtype == HP_F64);
    const int from = find(s, kind, param);
    block *b = malloc(sizeof *b);
    if (!b) return hp_fail(err, HP_EDATA, "no memory to read %s", param);
    *missing = 0;
    for (int64_t at = 0; at < count; at += b->count) {
        *b = (block){.first = first + at, .count = count - at < BLOCK ? count - at : BLOCK};
        for (int i = from; i < s->n && s->shard[i].kind == kind && strcmp(s->shard[i].param, param) == 0; i++)
            if (rank == HP_SHARDS_ALL || s->shard[i].rank == rank) add_shard(b, &s->shard[i]);
        *missing += put_block(b, kind != HP_STATE_STATISTICS, dtype, out, at);
    }
    free(b);
    return HP_OK;
}

/* --- by name --- */

const char *hp_shards_next(const hp_shards *s, int32_t kind, const char *name) {
    int i = find(s, kind, name ? name : "");
    while (name && i < s->n && s->shard[i].kind == kind && strcmp(s->shard[i].param, name) == 0) i++;
    return i < s->n && s->shard[i].kind == kind ? s->shard[i].param : NULL;
}

/* "64,3,7,7" */
static bool read_shape(const char *text, int64_t *dim, int32_t *n) {
    int64_t elems = 1;
    *n = 0;
    for (char *end; text && *text; text = *end == ',' ? end + 1 : end) {
        if (*n == HP_ST_MAX_DIM || *text < '0' || *text > '9') return false;
        dim[*n] = strtoll(text, &end, 10);
        if (__builtin_mul_overflow(elems, dim[(*n)++], &elems) || (*end && *end != ',')) return false;
    }
    return text != NULL;
}

hp_status hp_shards_shape(const hp_shards *s, int32_t kind, const char *name, int64_t *dim, int32_t *n,
                          hp_error *err) {
    const int i = find(s, kind, name);
    char shown[64];
    if (i < s->n && s->shard[i].kind == kind && strcmp(s->shard[i].param, name) == 0 &&
        read_shape(hp_safetensors_note(s->file[s->shard[i].rank], name), dim, n))
        return HP_OK;
    return hp_fail(err, HP_EDATA, "the checkpoint does not say which shape '%s' has",
                   hp_st_printable(name, shown));
}
