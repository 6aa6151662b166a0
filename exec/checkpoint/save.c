/* save.c - one save: state copied, written by a thread, completed by rank 0 once all ranks have written. */
#include "exec/checkpoint/save_inside.h"
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- threads --- */

/* If no thread can be started, the caller does the work itself: slower, but it gets done. */
static void start(checkpoint_job *j, void *(*run)(void *), hp_checkpoint *c) {
    j->err = (hp_error){.code = HP_OK, .text = ""};
    j->status = HP_OK;
    atomic_store(&j->done, false);
    j->started = pthread_create(&j->thread, NULL, run, c) == 0;
    if (!j->started) run(c);
}

hp_status checkpoint_join(checkpoint_job *j, hp_error *err) {
    if (j->started) pthread_join(j->thread, NULL);
    j->started = false;
    const hp_status s = j->status;
    if (s != HP_OK && err) *err = j->err;
    j->status = HP_OK;
    return s;
}

static void *write_part(void *self) {
    hp_checkpoint *c = self;
    checkpoint_job *j = &c->write;
    free(c->chunks.hash);
    j->status = hp_checkpoint_put(&hp_disk, c->o.dir, c->now.step, c->o.comm->rank, c->o.graph, c->piece,
                                  c->n, (hp_dtype)c->o.program->dtype, c->copy, &c->chunks, &j->err);
    atomic_store(&j->done, true);
    return NULL;
}

static void free_files(hp_checkpoint *c) {
    for (int r = 0; c->now.file && r < c->o.comm->size; r++) free(c->now.file[r].hash);
    free(c->now.file);
    c->now.file = NULL;
}

static void *commit(void *self) {
    hp_checkpoint *c = self;
    checkpoint_job *j = &c->commit;
    j->status = hp_checkpoint_commit(&hp_disk, c->o.dir, &c->now, c->o.keep, &j->err);
    free_files(c);
    atomic_store(&j->done, true);
    return NULL;
}

/* --- beginning --- */

static hp_status copy_state(hp_checkpoint *c, hp_error *err) {
    const hp_role *r = &c->o.program->role[c->o.role];
    const int64_t each = hp_dtype_bytes((hp_dtype)c->o.program->dtype);
    unsigned char *to = c->copy;
    for (int i = 0; i < c->n; i++) {
        const hp_state_piece *s = &c->piece[i];
        if (!s->home) continue;
        const unsigned char *from = c->o.arena + r->buffer[s->buffer].offset + s->at * each;
        HP_TRY(c->o.memory->ops->get(c->o.memory, to, from, s->count * each, err));
        to += s->count * each;
    }
    return HP_OK;
}

/* The previous save may still be unfinished. */
void checkpoint_settle(hp_checkpoint *c) {
    hp_error why;
    if (checkpoint_join(&c->commit, &why) != HP_OK)
        fprintf(stderr, "note: a checkpoint was not written: %s\n", why.text);
}

hp_status checkpoint_begin(hp_checkpoint *c, const hp_checkpoint_now *now, hp_error *err) {
    HP_ASSERT(!c->pending);
    checkpoint_settle(c);
    c->now = c->o.run;
    c->now.step = now->done;
    c->now.updates = now->updates;
    c->now.loss = now->loss;
    c->now.loss_scale = now->loss_scale;
    c->now.loss_scale_good = now->loss_scale_good;
    c->now.loss_scale_skipped = now->loss_scale_skipped;
    HP_TRY(copy_state(c, err));
    c->pending = true;
    start(&c->write, write_part, c);
    return HP_OK;
}

/* --- completing --- */

bool checkpoint_written(const hp_checkpoint *c) {
    return c->pending && atomic_load(&c->write.done);
}

static hp_status wait_for_disk(const hp_checkpoint *c, hp_error *err) {
    const struct timespec pause = {.tv_nsec = 1000000};
    while (!checkpoint_written(c)) {
        if (c->o.stop && *c->o.stop)
            return hp_fail(err, (hp_status)(128 + *c->o.stop), "ended by signal %d in a checkpoint",
                           (int)*c->o.stop);
        nanosleep(&pause, NULL);
    }
    return HP_OK;
}

/* Sets the lengths of all files; returns the largest number of chunks in one. */
static int64_t make_files(hp_checkpoint *c, const double *bytes) {
    int64_t most = 0;
    c->cost.bytes = 0;
    c->now.file = hp_zeroed((size_t)c->o.comm->size, sizeof *c->now.file);
    for (int r = 0; r < c->o.comm->size; r++) {
        hp_chunks *f = &c->now.file[r];
        *f = (hp_chunks){.bytes = (int64_t)bytes[r], .n = (int32_t)hp_chunks_of((int64_t)bytes[r])};
        f->hash = hp_zeroed((size_t)f->n + 1, sizeof *f->hash);
        if (f->n > most) most = f->n;
        c->cost.bytes += f->bytes;
    }
    return most;
}

/* Sends the hashes of all files to every rank; rank 0 writes them down. */
static hp_status share_chunks(hp_checkpoint *c, hp_error *err) {
    const int n = c->o.comm->size;
    double *bytes = hp_zeroed((size_t)n, sizeof *bytes);
    hp_status s = checkpoint_share(c, (double)c->chunks.bytes, bytes, err);
    const int64_t most = s == HP_OK ? make_files(c, bytes) : 0;
    uint64_t *mine = calloc((size_t)most + 1, sizeof *mine),
             *all = calloc((size_t)(most * n) + 1, sizeof *all);
    HP_ASSERT(mine && all);
    if (s == HP_OK) {
        memcpy(mine, c->chunks.hash, sizeof *mine * (size_t)c->chunks.n);
        s = hp_comm_share_bytes(c->o.comm, mine, most * (int64_t)sizeof *mine, all, "the other ranks' hashes",
                                err);
    }
    for (int r = 0; r < n && s == HP_OK; r++)
        memcpy(c->now.file[r].hash, all + r * most, sizeof *all * (size_t)c->now.file[r].n);
    free(bytes);
    free(mine);
    free(all);
    return s;
}

/* A failed save is reported; it does not end the run. */
static hp_status say_failed(hp_checkpoint *c, hp_status s, bool speaker, const hp_error *why, bool wait,
                            hp_error *err) {
    if (c->o.comm->rank == 0)
        hp_disk_remove(&hp_disk, hp_checkpoint_path(c->arena, c->o.dir, c->now.step, true), NULL);
    if (wait) return hp_fail(err, s, "%s", why->text);
    if (speaker)
        fprintf(stderr, "note: the checkpoint of step %lld was not written: %s\n", (long long)c->now.step,
                why->text);
    return HP_OK;
}

hp_status checkpoint_complete(hp_checkpoint *c, bool wait, hp_error *err) {
    bool speaker = false;
    hp_error why = {.code = HP_OK, .text = ""};
    HP_TRY(wait_for_disk(c, err));
    hp_status s = checkpoint_agree(c, checkpoint_join(&c->write, &why), &speaker, &why);
    c->pending = false;
    if (s == HP_ESTALL) return hp_fail(err, s, "%s", why.text);
    if (s != HP_OK) return say_failed(c, s, speaker, &why, wait, err);
    s = share_chunks(c, err);
    c->cost.saves++;
    if (s == HP_OK && c->o.comm->rank == 0)
        start(&c->commit, commit, c);
    else
        free_files(c);
    if (s != HP_OK || !wait) return s;
    s = c->o.comm->rank == 0 ? checkpoint_join(&c->commit, &why) : HP_OK;
    s = checkpoint_agree(c, s, &speaker, &why);
    return s == HP_OK ? HP_OK : hp_fail(err, s, "%s", why.text);
}
