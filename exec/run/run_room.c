/* run_room.c - is there memory on a node for the arenas of all its ranks? */
#include "exec/run/run_room.h"

#include "base/host.h"
#include "machines/here.h"

hp_status hp_room_fits(const hp_room *all, int n, int rank, hp_error *err) {
    int ranks = 0;
    int64_t need = 0, free_bytes = all[rank].free_bytes;
    for (int r = 0; r < n; r++) {
        if (all[r].node != all[rank].node) continue;
        ranks++;
        need += all[r].need_bytes;
        if (all[r].free_bytes < free_bytes) free_bytes = all[r].free_bytes;
    }
    if (need <= free_bytes) return HP_OK;
    return hp_fail(
        err, HP_EPLAN,
        "rank %d: with comm=shm the %d rank%s of its node reserve%s %lld bytes of memory at the start, "
        "%lld are free; comm=own takes memory as it is used; a plan with more stages or recompute "
        "needs less",
        rank, ranks, ranks == 1 ? "" : "s", ranks == 1 ? "s" : "", (long long)need, (long long)free_bytes);
}

hp_status hp_room_check(hp_comm *comm, int64_t bytes, hp_error *err) {
    hp_here here = {.free_bytes = 0};
    const hp_status known = hp_here_read(&hp_here_system, &here, err);
    const hp_room mine = {.node = hp_node_id(), .need_bytes = bytes, .free_bytes = here.free_bytes};
    hp_room *all = calloc((size_t)comm->size, sizeof *all);
    HP_ASSERT(all);
    hp_status s = hp_comm_share_bytes(comm, &mine, sizeof mine, all, "the memory that the ranks need", err);
    if (s == HP_OK) s = known == HP_OK ? hp_room_fits(all, comm->size, comm->rank, err) : known;
    free(all);
    return s;
}
