/* resume.c - finds the newest complete checkpoint and loads its state for the current plan. */
#include "exec/checkpoint/save_inside.h"
#include "base/alloc.h"

#include "checkpoints/shards.h"

#include <stdlib.h>
#include <string.h>

/* --- finding --- */

/* Ranks divide the files among themselves. */
static hp_status check_one(hp_checkpoint *c, int64_t step, hp_error *err) {
    HP_TRY(hp_checkpoint_read(c->arena, c->o.dir, step, &c->stored, err));
    return hp_checkpoint_verify(c->arena, c->o.dir, &c->stored, c->o.comm->rank, c->o.comm->size, err);
}

static hp_status find_whole(hp_checkpoint *c, const int64_t *step, int n, hp_error *err) {
    double *all = HP_NEW(c->arena, double, c->o.comm->size);
    for (int i = 0;; i++) {
        bool speaker = false;
        hp_error why = {.code = HP_OK, .text = ""};
        HP_TRY(checkpoint_share(c, i < n ? (double)step[i] : -1, all, err));
        if (all[0] < 0) return HP_OK;
        const hp_status s = checkpoint_agree(c, check_one(c, (int64_t)all[0], &why), &speaker, &why);
        if (s == HP_ESTALL) return hp_fail(err, s, "%s", why.text);
        c->resumed = s == HP_OK;
        if (c->resumed) return HP_OK;
        if (speaker)
            fprintf(stderr, "note: the checkpoint of step %.0f is damaged and left out: %s\n", all[0],
                    why.text);
    }
}

static void say_found(const hp_checkpoint *c) {
    if (!c->resumed) {
        fprintf(stderr, "note: %s holds no checkpoint: the run begins\n", c->o.dir);
        return;
    }
    const char *notes = hp_manifest_notes(c->arena, &c->stored, &c->o.run);
    fprintf(stderr, "note: the run goes on after step %lld%s%s\n", (long long)c->stored.step,
            *notes ? "; " : "", notes);
}

/* Only rank 0 lists the folder and knows the data. */
hp_status checkpoint_find(hp_checkpoint *c, bool *speaker, hp_error *err) {
    int64_t *step = NULL;
    int n = 0;
    const bool first = c->o.comm->rank == 0;
    HP_TRY(checkpoint_agree(c, first ? hp_checkpoint_list(c->arena, c->o.dir, &step, &n, err) : HP_OK,
                            speaker, err));
    HP_TRY(find_whole(c, step, n, err));
    const hp_status s = first && c->resumed ? hp_manifest_same(&c->stored, &c->o.run, err) : HP_OK;
    HP_TRY(checkpoint_agree(c, s, speaker, err));
    if (first) say_found(c);
    return HP_OK;
}

/* --- loading --- */

static bool same_layout(const hp_checkpoint *c) {
    return strcmp(c->stored.layout, c->o.run.layout) == 0;
}

/* The rank whose saved pieces this piece comes from: itself under the same plan, for state that
 * differs between ranks. */
static int64_t source_of(const hp_checkpoint *c, const hp_state_piece *s) {
    const bool own = s->kind == HP_STATE_STATISTICS || s->kind == HP_STATE_CARRY || c->stored.local > 0;
    return same_layout(c) && own ? c->o.comm->rank : HP_SHARDS_ALL;
}

/* Statistics that another rank starts with, and codec state of another plan, begin as zeros. */
static bool begins_empty(const hp_checkpoint *c, const hp_state_piece *s) {
    if (s->kind == HP_STATE_CARRY) return !same_layout(c);
    return s->kind == HP_STATE_STATISTICS && !(same_layout(c) ? s->home : s->start);
}

static hp_status load_piece(const hp_checkpoint *c, const hp_shards *shards, const hp_state_piece *s,
                            void *room, hp_error *err) {
    const hp_dtype dtype = (hp_dtype)c->o.program->dtype;
    const int64_t bytes = s->count * hp_dtype_bytes(dtype);
    int64_t missing = 0;
    char number[16];
    snprintf(number, sizeof number, "%d", s->param);
    const char *param = s->kind == HP_STATE_CARRY ? number : c->o.graph->param[s->param].name;
    memset(room, 0, (size_t)bytes);
    if (!begins_empty(c, s))
        HP_TRY(hp_shards_read(shards, s->kind, param, s->first, s->count, source_of(c, s), dtype, room,
                              &missing, err));
    if (missing)
        return hp_fail(err, HP_EDATA, "the checkpoint of step %lld lacks %lld elements of the %s of %s",
                       (long long)c->stored.step, (long long)missing, hp_state_names[s->kind], param);
    unsigned char *to =
        c->o.arena + c->o.program->role[c->o.role].buffer[s->buffer].offset + s->at * hp_dtype_bytes(dtype);
    return c->o.memory->ops->put(c->o.memory, to, room, bytes, err);
}

static hp_status load_pieces(const hp_checkpoint *c, const hp_shards *shards, hp_error *err) {
    int64_t most = 0;
    for (int i = 0; i < c->n; i++)
        if (c->piece[i].count > most) most = c->piece[i].count;
    void *room = hp_alloc((size_t)(most * hp_dtype_bytes((hp_dtype)c->o.program->dtype)) + 1);
    hp_status s = HP_OK;
    for (int i = 0; i < c->n && s == HP_OK; i++) s = load_piece(c, shards, &c->piece[i], room, err);
    free(room);
    return s;
}

/* Reports what is lost because the plan changed. */
static void say_lost(const hp_checkpoint *c) {
    bool carries = false;
    if (same_layout(c)) return;
    for (int i = 0; i < c->n; i++) carries = carries || c->piece[i].kind == HP_STATE_CARRY;
    fprintf(stderr, "note: the plan is another: it was %s on %lld rank%s%s%s\n", c->stored.strategy,
            (long long)c->stored.ranks, c->stored.ranks == 1 ? "" : "s",
            carries ? "; what compression carries from step to step begins with zeros" : "",
            c->stored.local > 0 && c->stored.step % c->stored.local
                ? "; the replicas' parameters became their mean"
                : "");
}

hp_status hp_checkpoint_load(hp_checkpoint *c, bool *speaker, hp_error *err) {
    hp_shards *shards = NULL;
    if (!c->resumed) return HP_OK;
    hp_status s = hp_shards_open(c->o.dir, &c->stored, &shards, err);
    if (s == HP_OK) s = load_pieces(c, shards, err);
    hp_shards_close(shards);
    HP_TRY(checkpoint_agree(c, s, speaker, err));
    if (c->o.comm->rank == 0) say_lost(c);
    return HP_OK;
}
