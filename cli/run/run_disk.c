/* run_disk.c - needs room for the checkpoints that are kept, for one more while it is written, and for the
 * final weights. */
#include "cli/run/run_disk.h"

#include "base/units.h"
#include "checkpoints/checkpoint_state.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

enum { KEPT = 2 }; /* without --keep: docs/checkpoints.md */

/* A rank's header and the manifest are some KB. */
static int64_t bytes_of(hp_arena *arena, const hp_plan *plan) {
    enum { HEADER = 4096 };
    const hp_program *p = plan->program;
    int64_t sum = HEADER;
    for (int r = 0; r < hp_program_ranks(p); r++) {
        int n;
        const hp_state_piece *piece =
            hp_state_pieces(arena, p, plan->graph, r % p->n_role, r / p->n_role, &n);
        sum += hp_state_bytes(p, piece, n) + HEADER;
    }
    return sum;
}

static int held(const char *dir) {
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        n += strncmp(e->d_name, "step-", 5) == 0 && !strchr(e->d_name, '.');
    if (d) closedir(d);
    return n;
}

/* Free bytes at the folder, or at its nearest ancestor that exists. */
static bool free_bytes(const char *dir, int64_t *bytes) {
    char path[4096];
    struct statvfs st;
    snprintf(path, sizeof path, "%s", dir);
    while (statvfs(path, &st) != 0) {
        char *slash = strrchr(path, '/');
        if (errno != ENOENT || strcmp(path, ".") == 0) return false;
        if (!slash)
            strcpy(path, ".");
        else
            slash[slash == path] = '\0';
    }
    *bytes = (int64_t)st.f_bavail * (int64_t)st.f_frsize;
    return true;
}

static hp_status check_checkpoints(hp_arena *arena, const hp_plan *plan, const char *dir, const char *keep,
                                   hp_error *err) {
    char one[32], all[32], there[32];
    int64_t kept = KEPT, room = 0;
    if (!dir || !free_bytes(dir, &room)) return HP_OK; /* hplan-exec says what is wrong with the folder */
    if (keep) HP_TRY(hp_parse_int(keep, "--keep", 1, 1000000, &kept, err));
    const int already = held(dir);
    const int64_t bytes = bytes_of(arena, plan), times = kept + 1 - (already < kept ? already : kept);
    if (bytes * times <= room) return HP_OK;
    return hp_fail(err, HP_EIO,
                   "checkpoints in %s need %s, %lld of %s each, and %s are free there: free some, keep fewer "
                   "(--keep %lld), or give another folder",
                   dir, hp_format_bytes((double)(bytes * times), all), (long long)times,
                   hp_format_bytes((double)bytes, one), hp_format_bytes((double)room, there),
                   (long long)(kept > 1 ? kept - 1 : 1));
}

/* An earlier file of that name stays until the new one is whole. */
static hp_status check_weights(const hp_plan *plan, const char *path, hp_error *err) {
    char need[32], there[32];
    int64_t bytes = 0, room = 0;
    if (!path || !free_bytes(path, &room)) return HP_OK;
    for (int i = 0; i < plan->graph->n_param; i++)
        bytes += plan->graph->param[i].count * (plan->program->dtype == HP_F64 ? 8 : 4);
    if (bytes <= room) return HP_OK;
    return hp_fail(err, HP_EIO,
                   "--save %s needs %s, and %s are free there: free some, or give another folder", path,
                   hp_format_bytes((double)bytes, need), hp_format_bytes((double)room, there));
}

hp_status run_disk_check(hp_arena *arena, const hp_plan *plan, const run_disk *disk, hp_error *err) {
    HP_TRY(check_checkpoints(arena, plan, disk->checkpoints, disk->keep, err));
    return check_weights(plan, disk->save, err);
}
