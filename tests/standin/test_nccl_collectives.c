/* test_nccl_collectives.c - every collective by NCCL does what plan/collectives defines, by the laws of
 * comm_law.h, on 1 to 8 real MPI ranks with a stand-in GPU each. Where NCCL's semantics differ, it is refused
 * before anything runs. This program starts itself under mpirun. */
#include "exec/cuda/nccl/nccl.h"
#include "exec/cuda/runtime/cuda.h"
#include "tests/support/exec/comm_law.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { NCCL = 1 << HP_BACKEND_NCCL, MAX_RANKS = 8 };

/* --- ranks: "ranks SEED" --- */

/* Nothing reached NCCL: neither now nor at the end of the group. */
static hp_status refuses(hp_comm *comm, const comm_room *room, const hp_comm_op *like, hp_error *err) {
    hp_event *done;
    hp_comm_op op = *like;
    int handle;
    HP_TRY(room->memory.ops->streams->event_new(&room->memory, &done, err));
    op.order = &(hp_order){.done = done};
    op.kind = HP_COMM_COLLECTIVE;
    op.backend = HP_BACKEND_NCCL;
    op.device = true;
    op.count = 8 * comm->size;
    op.data = room->at;
    const hp_status s = comm->ops->start(comm, &op, &handle, err);
    room->memory.ops->streams->event_free(&room->memory, done);
    if (s != HP_EUNAVAIL || !strstr(err->text, "NCCL") || !strstr(err->text, "choose comm=mpi"))
        return hp_fail(err, HP_EINTERNAL, "%s was not refused", hp_collective_infos[op.what].name);
    return comm->ops->end(comm, err);
}

static hp_status refuses_what_it_lacks(hp_comm *comm, const comm_room *room, hp_error *err) {
    static const int reals[] = {HP_F32, HP_F64, HP_BF16, HP_F16};
    static const int adding[] = {HP_COLLECTIVE_ALLREDUCE, HP_COLLECTIVE_REDUCE_SCATTER, HP_COLLECTIVE_REDUCE};
    HP_TRY(refuses(comm, room, &(hp_comm_op){.what = HP_COLLECTIVE_ALL_TO_ALL}, err));
    for (int c = 0; c < 3; c++)
        for (int t = 0; t < 4; t++)
            for (int r = HP_REDUCE_MIN; r <= HP_REDUCE_MAX; r++)
                HP_TRY(refuses(comm, room,
                               &(hp_comm_op){.what = adding[c], .dtype = reals[t], .reduction = r}, err));
    return HP_OK;
}

static hp_status laws(hp_comm *comm, const comm_room *room, uint64_t seed, hp_error *err) {
    HP_TRY(comm_law_sweep(comm, room, HP_BACKEND_NCCL, 1, seed, err));
    for (uint64_t k = 0; k < 2; k++) HP_TRY(comm_law_collectives(comm, room, NCCL, seed + 1 + k, err));
    return refuses_what_it_lacks(comm, room, err);
}

static int ranks_main(uint64_t seed) {
    hp_comm *comm = NULL;
    hp_error err;
    if (hp_comm_mpi_open(&comm, &err) != HP_OK) return 1;
    comm = hp_comm_own(comm);
    comm_room room = comm_room_new(&hp_memory_cuda);
    comm = hp_comm_staged(comm, &room.memory);
    hp_status s = hp_comm_nccl(comm, &room.memory, &comm, &err);
    if (s == HP_OK) s = laws(comm, &room, seed, &err);
    if (s != HP_OK) {
        fprintf(stderr, "%s\n", err.text);
        comm->ops->abort(comm, 1);
    }
    comm->ops->close(comm);
    comm_room_free(&room);
    return 0;
}

static void nccl_does_every_collective(void **state) {
    (void)state;
    if (system("command -v mpirun >/dev/null") != 0) skip();
    for (uint64_t seed = 1; seed <= law_cases(MAX_RANKS); seed++) {
        char argument[64], delays[32];
        snprintf(argument, sizeof argument, "ranks %llu", (unsigned long long)seed * 10);
        snprintf(delays, sizeof delays, "%d", (int)(seed % 3)); /* 0: none */
        setenv("HPLAN_STANDIN_SEED", delays, 1);
        assert_int_equal(start_ranks(1 + (int)((seed - 1) % MAX_RANKS), argument), 0);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nccl_does_every_collective)};
    if (argc > 1 && strncmp(argv[1], "ranks ", 6) == 0) return ranks_main(strtoull(argv[1] + 6, NULL, 10));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
