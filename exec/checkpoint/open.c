/* open.c - the folder, shared by all ranks and locked by one run, and memory for a copy of the state. */
#include "exec/checkpoint/save_inside.h"
#include "base/alloc.h"

#include "base/clock.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static const char OTHERS[] = "the other ranks' part of a checkpoint";

hp_status checkpoint_share(const hp_checkpoint *c, double value, double *all, hp_error *err) {
    return hp_comm_share_within(c->o.comm, value, all, CHECKPOINT_LIMIT_S, OTHERS, err);
}

hp_status checkpoint_agree(const hp_checkpoint *c, hp_status mine, bool *speaker, hp_error *err) {
    return hp_comm_agree_within(c->o.comm, mine, speaker, CHECKPOINT_LIMIT_S, OTHERS, err);
}

/* --- the folder --- */

/* The lock lasts until the process ends. File systems without locks go unprotected. */
static hp_status lock_folder(hp_checkpoint *c, hp_error *err) {
    const char *path = hp_arena_printf(c->arena, "%s/lock", c->o.dir);
    c->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (c->lock < 0)
        return hp_fail(err, HP_ECREATE, "--checkpoint %s: cannot create files there: %s", c->o.dir,
                       strerror(errno));
    if (flock(c->lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return HP_OK;
    return hp_fail(err, HP_ECREATE, "--checkpoint %s: another run is writing there; give a folder of its own",
                   c->o.dir);
}

static hp_status refuse_older(hp_checkpoint *c, hp_error *err) {
    int64_t *step;
    int n;
    HP_TRY(hp_checkpoint_list(c->arena, c->o.dir, &step, &n, err));
    if (n == 0 || c->o.resume) return HP_OK;
    return hp_fail(err, HP_EDATA,
                   "--checkpoint %s holds a checkpoint of step %lld: go on from it with --resume, or give an "
                   "empty folder",
                   c->o.dir, (long long)step[0]);
}

/* Rank 0 writes a file that all other ranks must find. */
static hp_status make_token(hp_checkpoint *c, const char *path, const char *text, hp_error *err) {
    HP_TRY(hp_disk_folder(&hp_disk, c->o.dir, err));
    HP_TRY(lock_folder(c, err));
    HP_TRY(refuse_older(c, err));
    hp_checkpoint_clean(&hp_disk, c->o.dir);
    unlink(path);
    return hp_disk_put(&hp_disk, path, text, err);
}

static hp_status find_token(const hp_checkpoint *c, const char *path, const char *text, hp_error *err) {
    char found[32] = "", host[64] = "";
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, found, sizeof found - 1);
    if (fd >= 0) close(fd);
    if (n > 0 && strcmp(found, text) == 0) return HP_OK;
    gethostname(host, sizeof host - 1);
    return hp_fail(
        err, HP_ECREATE,
        "--checkpoint %s: rank %d on %s does not see what rank 0 writes there: give a folder that all "
        "nodes share",
        c->o.dir, c->o.comm->rank, host);
}

static hp_status share_folder(hp_checkpoint *c, bool *speaker, hp_error *err) {
    const char *path = hp_arena_printf(c->arena, "%s/shared", c->o.dir);
    double *all = HP_NEW(c->arena, double, c->o.comm->size);
    const int64_t secret[] = {(int64_t)getpid(), (int64_t)time(NULL), (int64_t)(1e9 * hp_now_s())};
    const bool first = c->o.comm->rank == 0;
    HP_TRY(checkpoint_share(c, (double)(hp_hash64(secret, sizeof secret, 0) >> 16), all, err));
    const char *text = hp_arena_printf(c->arena, "%.0f", all[0]);
    HP_TRY(checkpoint_agree(c, first ? make_token(c, path, text, err) : HP_OK, speaker, err));
    const hp_status s = checkpoint_agree(c, find_token(c, path, text, err), speaker, err);
    if (first) unlink(path);
    return s;
}

/* --- the rank --- */

/* Writes to all pages at once, so that a lack of memory is an error now, not in the middle of the run. */
static hp_status take_memory(hp_checkpoint *c, hp_error *err) {
    c->copy = malloc((size_t)c->bytes + 1);
    if (!c->copy)
        return hp_fail(err, HP_EPLAN, "rank %d has no memory for the %lld bytes of a checkpoint's copy",
                       c->o.comm->rank, (long long)c->bytes);
    memset(c->copy, 0, (size_t)c->bytes + 1);
    return HP_OK;
}

static hp_status open_all(hp_checkpoint *c, bool *speaker, hp_error *err) {
    HP_TRY(share_folder(c, speaker, err));
    HP_TRY(checkpoint_agree(c, take_memory(c, err), speaker, err));
    return c->o.resume ? checkpoint_find(c, speaker, err) : HP_OK;
}

hp_status hp_checkpoint_open(const hp_checkpoint_config *config, hp_checkpoint **out, bool *speaker,
                             hp_error *err) {
    hp_checkpoint *c = hp_zeroed(1, sizeof *c);
    c->o = *config;
    c->lock = -1;
    c->arena = hp_arena_new();
    c->piece = hp_state_pieces(c->arena, c->o.program, c->o.graph, c->o.role, c->o.replica, &c->n);
    c->bytes = hp_state_bytes(c->o.program, c->piece, c->n);
    c->saved_s = hp_now_s();
    *out = c;
    return open_all(c, speaker, err);
}

void hp_checkpoint_close(hp_checkpoint *c) {
    if (!c) return;
    checkpoint_join(&c->write, NULL);
    checkpoint_settle(c);
    if (c->lock >= 0) close(c->lock);
    free(c->chunks.hash);
    free(c->copy);
    hp_arena_free(c->arena);
    free(c);
}

const hp_manifest *hp_checkpoint_resumed(const hp_checkpoint *c) {
    return c && c->resumed ? &c->stored : NULL;
}

hp_checkpoint_cost hp_checkpoint_cost_of(const hp_checkpoint *c) {
    return c->cost;
}
