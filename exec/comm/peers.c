/* peers.c - which ranks of the node can read each other's memory.
 *
 * That another's memory opens does not prove that its bytes come: behind some PCIe switches with access
 * control, and in some virtual machines, copies between devices end well and bring something else. So each
 * pair tries: every rank puts a pattern of its own where its memory begins; those that opened it copy it to
 * theirs, as they will messages, and compare. What the memory held is put back once all have tried. Whatever
 * fails before the trial, or in it, costs the pair this route and no more: there is another one. */
#include "exec/comm/peers.h"

#include "plan/base/hash.h"
#include "plan/base/rng.h"
#include "plan/base/clock.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    AGREE_TAG = 1 << 20, /* no program's, nor comm/peer.c's: nothing else is under way */
    TRIAL_BYTES = 4096   /* a page, the least that has an address of its own in translation */
};

typedef struct peer_card {
    uint64_t node;
    hp_memory_name name;
    int64_t bytes; /* of the pattern */
    bool named;
} peer_card;

typedef struct meeting {
    hp_comm *comm;
    const hp_memory *memory;
    unsigned char *arena; /* the pattern, and behind it room for another's */
    int64_t bytes;        /* of either */
    const peer_card *card;
    hp_event *event; /* behind a copy */
    bool saved;
    unsigned char before[2 * TRIAL_BYTES];
} meeting;

/* As NCCL has it: by the host's name and what its kernel drew at its start. */
static uint64_t this_node(void) {
    char text[HOST_NAME_MAX + 64] = "";
    gethostname(text, HOST_NAME_MAX);
    const size_t n = strlen(text);
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t more = fd < 0 ? 0 : read(fd, text + n, sizeof text - n - 1);
    if (fd >= 0) close(fd);
    return hp_hash64(text, n + (more > 0 ? (size_t)more : 0), 0);
}

/* --- the trial --- */

/* Of the memory's name, which tells processes apart: what an earlier one left there does not pass. */
static void pattern(const peer_card *card, int rank, int64_t bytes, unsigned char *out) {
    const uint64_t seed = hp_hash64(card->name.bytes, sizeof card->name.bytes, (uint64_t)rank);
    for (int64_t i = 0; i < bytes; i++) out[i] = (unsigned char)hp_rng_below(seed, 0, (uint64_t)i, 256);
}

static bool get_ready(meeting *m, peer_card *mine) {
    unsigned char own[TRIAL_BYTES];
    hp_error why;
    if (m->memory->ops->peers->name(m->memory, m->arena, &mine->name, &why) != HP_OK) return false;
    if (m->memory->ops->streams->event_new(m->memory, &m->event, &why) != HP_OK) return false;
    m->saved = m->memory->ops->get(m->memory, m->before, m->arena, 2 * m->bytes, &why) == HP_OK;
    pattern(mine, m->comm->rank, m->bytes, own);
    return m->saved && m->memory->ops->put(m->memory, m->arena, own, m->bytes, &why) == HP_OK;
}

static bool copied(const meeting *m, bool *late) {
    const double end_s = hp_now_s() + HP_COMM_SETUP_LIMIT_S;
    hp_error why;
    for (bool yes = false; !*late;) {
        if (m->memory->ops->streams->query(m->memory, m->event, &yes, &why) != HP_OK) return false;
        if (yes) return true;
        *late = hp_now_s() > end_s;
        sched_yield();
    }
    return false;
}

/* A copy without an end leaves nothing to fall back to: its stream is all messages'. */
static hp_status reads_right(const meeting *m, int rank, const unsigned char *at, bool *right,
                             hp_error *err) {
    const peer_card *card = &m->card[rank];
    const int64_t bytes = card->bytes < m->bytes ? card->bytes : m->bytes;
    unsigned char want[TRIAL_BYTES], have[TRIAL_BYTES], *room = m->arena + m->bytes;
    const hp_order order = {.done = m->event};
    hp_error why;
    bool late = false;
    pattern(card, rank, bytes, want);
    *right =
        m->memory->ops->streams->copy(m->memory, HP_STREAM_COPY, room, at, bytes, &order, &why) == HP_OK &&
        copied(m, &late) && m->memory->ops->get(m->memory, have, room, bytes, &why) == HP_OK &&
        memcmp(want, have, (size_t)bytes) == 0;
    if (late)
        return hp_fail(err, HP_ESTALL,
                       "stalled: rank %d waited %d s for a first copy from the memory of rank %d; "
                       "--no-ipc goes by way of the host",
                       m->comm->rank, HP_COMM_SETUP_LIMIT_S, rank);
    return HP_OK;
}

/* --- pairs --- */

/* One byte each way. All ranks take their peers in the same order: no two pairs wait for each other. */
static hp_status swap(hp_comm *comm, int peer, unsigned char mine, unsigned char *theirs, hp_error *err) {
    const hp_comm_op give = {
        .kind = HP_COMM_SEND, .peer = peer, .tag = AGREE_TAG, .dtype = HP_U8, .count = 1, .data = &mine};
    const hp_comm_op take = {
        .kind = HP_COMM_RECV, .peer = peer, .tag = AGREE_TAG, .dtype = HP_U8, .count = 1, .data = theirs};
    const bool first = comm->rank < peer;
    const char *what = "the ranks of this node to open each other's memory";
    HP_TRY(hp_comm_run(comm, first ? &give : &take, HP_COMM_SETUP_LIMIT_S, what, err));
    return hp_comm_run(comm, first ? &take : &give, HP_COMM_SETUP_LIMIT_S, what, err);
}

/* Both ways or not at all. */
static hp_status meet(const meeting *m, int rank, unsigned char **peer, hp_error *err) {
    const bool both = m->card[rank].named && m->card[m->comm->rank].named;
    hp_error why;
    void *at = NULL;
    bool right = false;
    unsigned char theirs = 0;
    const bool opened =
        both && m->memory->ops->peers->open(m->memory, &m->card[rank].name, &at, &why) == HP_OK;
    if (opened) HP_TRY(reads_right(m, rank, at, &right, err));
    const hp_status s = swap(m->comm, rank, right, &theirs, err);
    if (s == HP_OK && right && theirs)
        *peer = at;
    else if (opened)
        m->memory->ops->peers->close(m->memory, at);
    return s;
}

/* Cards come when all patterns are there; who has swapped verdicts has read. */
static hp_status meet_all(meeting *m, peer_card *card, unsigned char **peer, hp_error *err) {
    peer_card mine = {.node = this_node(), .bytes = m->bytes};
    mine.named = get_ready(m, &mine);
    m->card = card;
    HP_TRY(hp_comm_share_bytes(m->comm, &mine, sizeof mine, card, "the names of the ranks' memories", err));
    for (int r = 0; r < m->comm->size; r++)
        if (r != m->comm->rank && card[r].node == mine.node) HP_TRY(meet(m, r, &peer[r], err));
    return m->saved ? m->memory->ops->put(m->memory, m->arena, m->before, 2 * m->bytes, err) : HP_OK;
}

hp_status hp_peers_meet(hp_comm *comm, const hp_memory *memory, unsigned char *arena, int64_t bytes,
                        unsigned char **peer, hp_error *err) {
    peer_card *card = calloc((size_t)comm->size, sizeof *card);
    HP_ASSERT(card);
    meeting m = {.comm = comm,
                 .memory = memory,
                 .arena = arena,
                 .bytes = bytes < 2 * TRIAL_BYTES ? bytes / 2 : TRIAL_BYTES};
    const hp_status s = meet_all(&m, card, peer, err);
    if (m.event) memory->ops->streams->event_free(memory, m.event);
    free(card);
    return s;
}
