/* cmd_checkpoint.c - lists and verifies checkpoints, and exports their weights as one file for other
 * programs. */
#include "cli/show/frame.h"
#include "base/new_file.h"
#include "base/st_write.h"
#include "base/units.h"
#include "checkpoints/shards.h"
#include "checkpoints/checkpoint_folder.h"

#include <string.h>

typedef struct options {
    const char *output, *step;
    bool json;
} options;

/* --- ls, verify --- */

static int64_t bytes_of(const hp_manifest *m) {
    int64_t bytes = 0;
    for (int64_t r = 0; r < m->ranks; r++) bytes += m->file[r].bytes;
    return bytes;
}

static void show(int64_t step, const hp_manifest *m, const char *state) {
    char bytes[32], plain[160];
    printf("step %-10lld %s, loss %.4f, %lld rank%s of %s%s\n", (long long)step,
           hp_format_bytes((double)bytes_of(m), bytes), m->loss, (long long)m->ranks,
           m->ranks == 1 ? "" : "s", cli_plain(m->strategy, plain, sizeof plain), state);
}

static json_t *to_json(int64_t step, const hp_manifest *m) {
    return json_pack("{s:I, s:I, s:o, s:I, s:s}", "step", (json_int_t)step, "bytes", (json_int_t)bytes_of(m),
                     "loss", cli_json_number(m->loss), "ranks", (json_int_t)m->ranks, "strategy",
                     m->strategy);
}

static void show_damaged(int64_t step, const hp_error *why) {
    char plain[600];
    printf("step %-10lld damaged: %s\n", (long long)step, cli_plain(why->text, plain, sizeof plain));
}

static void print(const options *o, json_t *all, int64_t step, const hp_manifest *m, const char *state) {
    if (o->json)
        json_array_append_new(all, to_json(step, m));
    else
        show(step, m, state);
}

static void print_damaged(const options *o, json_t *all, int64_t step, const hp_error *why) {
    if (o->json)
        json_array_append_new(all, json_pack("{s:I, s:s}", "step", (json_int_t)step, "damaged", why->text));
    else
        show_damaged(step, why);
}

/* *damaged: how many are not what was written, as far as was looked. `all` gets them with --json. */
static hp_status list(frame *f, const char *dir, bool all_of_it, json_t *all, int *damaged, hp_error *err) {
    const options *o = f->options;
    int64_t *step;
    int n;
    *damaged = 0;
    HP_TRY(hp_checkpoint_list(f->arena, dir, &step, &n, err));
    for (int i = 0; i < n; i++) {
        hp_manifest m;
        hp_error why;
        hp_status s = hp_checkpoint_read(f->arena, dir, step[i], &m, &why);
        if (s == HP_OK && all_of_it) s = hp_checkpoint_verify(f->arena, dir, &m, 0, 1, &why);
        *damaged += s != HP_OK;
        if (s == HP_OK)
            print(o, all, step[i], &m, all_of_it ? ": whole" : "");
        else
            print_damaged(o, all, step[i], &why);
    }
    if (n == 0) return hp_fail(err, HP_EDATA, "%s holds no checkpoint", dir);
    return HP_OK;
}

/* all_of_it: every byte is compared, and damage is an error. */
static hp_status look(frame *f, const char *dir, bool all_of_it, hp_error *err) {
    const options *o = f->options;
    int damaged;
    json_t *all = json_array();
    const hp_status s = list(f, dir, all_of_it, all, &damaged, err);
    if (s == HP_OK && o->json)
        HP_TRY(cli_print_json(json_pack("{s:i, s:s, s:o}", "schema", 1, "folder", dir, "checkpoints", all),
                              err));
    else
        json_decref(all);
    if (s != HP_OK || !all_of_it || !damaged) return s;
    return hp_fail(err, HP_EDATA, "%d checkpoint%s of %s %s not what was written: --resume leaves %s out",
                   damaged, damaged == 1 ? "" : "s", dir, damaged == 1 ? "is" : "are",
                   damaged == 1 ? "it" : "them");
}

/* --- export --- */

typedef struct exported { /* the tensors of the file, and where each comes from */
    hp_arena *arena;
    const hp_shards *shards;
    const hp_manifest *m;
    hp_st_tensor *tensor;
    int32_t *kind; /* kind of the shards; HP_STATE_KINDS: the number of updates */
    int n;
    void *data; /* the current tensor's elements */
} exported;

static hp_dtype dtype_of(const exported *e) {
    return strcmp(e->m->dtype, hp_st_infos[HP_ST_F64].name) == 0 ? HP_F64 : HP_F32;
}

static hp_status add_param(exported *e, int32_t kind, const char *name, hp_error *err) {
    hp_st_tensor *t = &e->tensor[e->n];
    *t = (hp_st_tensor){.name = name, .dtype = dtype_of(e) == HP_F64 ? HP_ST_F64 : HP_ST_F32, .count = 1};
    HP_TRY(hp_shards_shape(e->shards, kind, name, t->dim, &t->n_dim, err));
    for (int i = 0; i < t->n_dim; i++) t->count *= t->dim[i];
    e->kind[e->n++] = kind;
    return HP_OK;
}

/* Adds num_batches_tracked beside every running mean, as --save does. */
static void add_counter(exported *e, const char *name) {
    static const char MEAN[] = "running_mean";
    const size_t n = strlen(name), tail = strlen(MEAN);
    if (n < tail || strcmp(name + n - tail, MEAN) != 0) return;
    e->tensor[e->n] =
        (hp_st_tensor){.name = hp_arena_printf(e->arena, "%.*snum_batches_tracked", (int)(n - tail), name),
                       .dtype = HP_ST_I64};
    e->kind[e->n++] = HP_STATE_KINDS;
}

static hp_status add_all(exported *e, hp_error *err) {
    static const int32_t KINDS[] = {HP_STATE_WEIGHTS, HP_STATE_STATISTICS};
    int n = 0;
    for (int k = 0; k < 2; k++)
        for (const char *name = NULL; (name = hp_shards_next(e->shards, KINDS[k], name));) n++;
    e->tensor = HP_NEW(e->arena, hp_st_tensor, 2 * n + 1);
    e->kind = HP_NEW(e->arena, int32_t, 2 * n + 1);
    for (const char *name = NULL; (name = hp_shards_next(e->shards, HP_STATE_STATISTICS, name));)
        add_counter(e, name);
    for (int k = 0; k < 2; k++)
        for (const char *name = NULL; (name = hp_shards_next(e->shards, KINDS[k], name));)
            HP_TRY(add_param(e, KINDS[k], name, err));
    return HP_OK;
}

static const void *data_of(void *self, int i, hp_error *err) {
    exported *e = self;
    const hp_st_tensor *t = &e->tensor[i];
    int64_t missing = 0, bytes = 0;
    if (e->kind[i] == HP_STATE_KINDS) return &e->m->updates;
    free(e->data);
    e->data = __builtin_mul_overflow(t->count, (int64_t)hp_dtype_bytes(dtype_of(e)), &bytes)
                  ? NULL
                  : malloc((size_t)bytes + 1);
    if (!e->data) {
        hp_fail(err, HP_EDATA, "no memory for %lld elements of %.64s", (long long)t->count, t->name);
        return NULL;
    }
    if (hp_shards_read(e->shards, e->kind[i], t->name, 0, t->count, HP_SHARDS_ALL, dtype_of(e), e->data,
                       &missing, err) != HP_OK)
        return NULL;
    if (missing) hp_fail(err, HP_EDATA, "the checkpoint lacks elements of %.64s", t->name);
    return missing ? NULL : e->data;
}

static hp_status write_weights(frame *f, const char *dir, const hp_manifest *m, hp_error *err) {
    const options *o = f->options;
    hp_shards *shards = NULL;
    HP_TRY(hp_checkpoint_verify(f->arena, dir, m, 0, 1, err));
    HP_TRY(hp_shards_open(dir, m, &shards, err));
    exported e = {.arena = f->arena, .shards = shards, .m = m};
    hp_status s = add_all(&e, err);
    const hp_st_source source = {.data = data_of, .self = &e};
    if (s == HP_OK) s = hp_safetensors_write(o->output, e.tensor, e.n, &source, err);
    free(e.data);
    hp_shards_close(shards);
    if (s != HP_OK) return s;
    if (o->json)
        return cli_print_json(
            json_pack("{s:i, s:s, s:I}", "schema", 1, "output", o->output, "step", (json_int_t)m->step), err);
    char plain[4096];
    printf("wrote %s: the weights of step %lld\n", cli_plain(o->output, plain, sizeof plain),
           (long long)m->step);
    return HP_OK;
}

/* The newest that is whole, or the one that was asked for. */
static hp_status export(frame *f, const char *dir, hp_error *err) {
    const options *o = f->options;
    int64_t *step, wanted = -1;
    int n;
    if (!o->output)
        return hp_fail(err, HP_EUSAGE,
                       "export needs -o FILE; for example: hplan checkpoint export %s -o weights.safetensors",
                       dir);
    HP_TRY(hp_new_file_check_plain(o->output, err));
    if (o->step) HP_TRY(hp_parse_int(o->step, "--step", 0, INT32_MAX, &wanted, err));
    HP_TRY(hp_checkpoint_list(f->arena, dir, &step, &n, err));
    for (int i = 0; i < n; i++) {
        hp_manifest m;
        if (o->step && step[i] != wanted) continue;
        hp_status s = hp_checkpoint_read(f->arena, dir, step[i], &m, err);
        if (s == HP_OK) s = write_weights(f, dir, &m, err);
        if (s != HP_EDATA || o->step) return s;
        if (!o->json) show_damaged(step[i], err);
    }
    return hp_fail(err, HP_EDATA, "%s holds no checkpoint%s that is whole", dir,
                   o->step ? " of that step" : "");
}

static hp_status run(frame *f, hp_error *err) {
    const char *what = f->word[0], *dir = f->word[1];
    hp_status s;
    if (strcmp(what, "ls") == 0)
        s = look(f, dir, false, err);
    else if (strcmp(what, "verify") == 0)
        s = look(f, dir, true, err);
    else if (strcmp(what, "export") == 0)
        s = export(f, dir, err);
    else
        return hp_fail(err, HP_EUSAGE, "checkpoint takes ls, verify or export, and a folder");
    const hp_status flushed = cli_finish_stdout(s == HP_OK ? err : NULL);
    return s != HP_OK ? s : flushed;
}

int cmd_checkpoint(int argc, char **argv) {
    static const frame_option option_list[] = {
        {"output", 'o', "FILE", offsetof(options, output), 0,
         "of export: safetensors, with torchvision's names"},
        {"json", 0, NULL, offsetof(options, json), 0, "one JSON object"},
        {"step", 0, "N", offsetof(options, step), 0, "of export: that one (the newest that is whole)"},
        {0}};
    static const frame_command command = {
        .option = option_list,
        .usage = "ls DIR\nverify DIR\nexport DIR -o FILE",
        .doc = "Checkpoints of hplan run --checkpoint DIR: what is there; whether every byte is what was "
               "written; "
               "the whole network's weights as one file.\vFor example: hplan checkpoint export saved -o "
               "weights.safetensors",
        .min_word = 2,
        .max_word = 2,
        .too_few = "needs ls, verify or export, and a folder. For example: hplan checkpoint ls saved",
        .run = run};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
