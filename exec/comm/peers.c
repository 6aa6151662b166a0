/* peers.c - the handshake that finds which ranks of the node can read each other's memory.
 *
 * A mapping may open and still deliver wrong bytes: some PCIe switches with access control, and some
 * virtual machines, corrupt copies between devices without an error. So each pair makes a trial. Every
 * rank writes a pattern of its own to the start of its memory; its peers copy and compare it, by the
 * route of messages. The contents are restored once all have tried. A failure before or in the trial only
 * means that the pair uses another route. */
#include "exec/comm/peers.h"

#include "exec/base/shared.h"
#include "exec/comm/copy.h"
#include "base/host.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/clock.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
    AGREE_TAG = 1 << 20, /* nothing else is pending during the handshake */
    TRIAL_BYTES = 4096   /* a page, the unit of address translation */
};

/* What a rank tells the others. */
typedef struct peer_card {
    uint64_t node;
    hp_memory_name name, inbox;
    int64_t bytes; /* size of the pattern */
    bool named;    /* false: its memory cannot be mapped */
} peer_card;

typedef struct handshake {
    hp_comm *comm;
    const hp_memory *memory;
    unsigned char *arena; /* the pattern, then room for a peer's pattern */
    int64_t bytes;        /* size of each */
    hp_peers *peers;
    const peer_card *card;
    hp_event *event; /* after a copy */
    bool saved;
    unsigned char before[2 * TRIAL_BYTES];
} handshake;

/* --- the trial --- */

/* The pattern depends on the handle, which is unique to a process, so a stale pattern of an
 * earlier process fails. */
static void make_pattern(const peer_card *card, int rank, int64_t bytes, unsigned char *out) {
    const uint64_t seed = hp_hash64(card->name.bytes, sizeof card->name.bytes, (uint64_t)rank);
    for (int64_t i = 0; i < bytes; i++) out[i] = (unsigned char)hp_rng_below(seed, 0, (uint64_t)i, 256);
}

static bool write_pattern(handshake *h, peer_card *mine) {
    unsigned char own[TRIAL_BYTES];
    hp_error why;
    if (h->memory->ops->peers->name(h->memory, h->arena, &mine->name, &why) != HP_OK) return false;
    if (hp_copy_event(h->memory, &h->event, &why) != HP_OK) return false;
    h->saved = h->memory->ops->get(h->memory, h->before, h->arena, 2 * h->bytes, &why) == HP_OK;
    make_pattern(mine, h->comm->rank, h->bytes, own);
    return h->saved && h->memory->ops->put(h->memory, h->arena, own, h->bytes, &why) == HP_OK;
}

static bool wait_for_copy(const handshake *h, bool *late) {
    const double end_s = hp_now_s() + HP_COMM_SETUP_LIMIT_S;
    hp_error why;
    for (bool yes = false; !*late;) {
        if (hp_copy_done(h->memory, h->event, &yes, &why) != HP_OK) return false;
        if (yes) return true;
        *late = hp_now_s() > end_s;
        sched_yield();
    }
    return false;
}

/* A copy that never completes has no fallback: it blocks the stream of all messages. */
static hp_status try_copy(const handshake *h, int rank, const unsigned char *at, bool *right, hp_error *err) {
    const peer_card *card = &h->card[rank];
    const int64_t bytes = card->bytes < h->bytes ? card->bytes : h->bytes;
    unsigned char want[TRIAL_BYTES], have[TRIAL_BYTES], *room = h->arena + h->bytes;
    hp_error why;
    bool late = false;
    make_pattern(card, rank, bytes, want);
    *right = hp_copy_start(h->memory, room, at, bytes, h->event, &why) == HP_OK && wait_for_copy(h, &late) &&
             h->memory->ops->get(h->memory, have, room, bytes, &why) == HP_OK &&
             memcmp(want, have, (size_t)bytes) == 0;
    if (late)
        return hp_fail(err, HP_ESTALL,
                       "stalled: rank %d waited %d s for a first copy from the memory of rank %d; "
                       "--no-ipc goes by way of the host",
                       h->comm->rank, HP_COMM_SETUP_LIMIT_S, rank);
    return HP_OK;
}

/* --- pairs --- */

/* Exchanges one byte. All ranks visit their peers in the same order, so no two pairs wait for each other. */
static hp_status exchange_byte(hp_comm *comm, int peer, unsigned char mine, unsigned char *theirs,
                               hp_error *err) {
    const hp_comm_op send = {
        .kind = HP_COMM_SEND, .peer = peer, .tag = AGREE_TAG, .dtype = HP_U8, .count = 1, .data = &mine};
    const hp_comm_op receive = {
        .kind = HP_COMM_RECV, .peer = peer, .tag = AGREE_TAG, .dtype = HP_U8, .count = 1, .data = theirs};
    const bool first = comm->rank < peer;
    const char *what = "the ranks of this node to open each other's memory";
    HP_TRY(hp_comm_run(comm, first ? &send : &receive, HP_COMM_SETUP_LIMIT_S, what, err));
    return hp_comm_run(comm, first ? &receive : &send, HP_COMM_SETUP_LIMIT_S, what, err);
}

/* --- inboxes --- */

static hp_note_slot *queue_from(hp_note_slot *inbox, int rank) {
    return inbox + (int64_t)rank * HP_NOTE_SLOTS;
}

/* Unused queues cost nothing: their pages are never touched. */
static bool make_inbox(const handshake *h, peer_card *mine) {
    void *at;
    hp_error why;
    const int64_t bytes = (int64_t)sizeof(hp_note_slot) * HP_NOTE_SLOTS * h->comm->size;
    if (hp_shared_new(bytes, &at, &why) != HP_OK) return false;
    h->peers->inbox = at;
    return hp_shared_name(at, &mine->inbox, &why) == HP_OK;
}

static bool open_inbox(const handshake *h, int rank, hp_peer *p) {
    void *at;
    hp_error why;
    if (hp_shared_open(&h->card[rank].inbox, true, &at, &why) != HP_OK) return false;
    p->inbox = at;
    p->out = (hp_note_queue){.slot = queue_from(p->inbox, h->comm->rank)};
    p->in = (hp_note_queue){.slot = queue_from(h->peers->inbox, rank)};
    return true;
}

/* --- all of it --- */

static void close_peer(const hp_memory *m, hp_peer *p) {
    if (p->memory) m->ops->peers->close(m, p->memory);
    hp_shared_free(p->inbox);
    *p = (hp_peer){.memory = NULL};
}

static bool map_peer(const handshake *h, int rank, hp_peer *p) {
    void *at;
    hp_error why;
    if (!h->card[rank].named || !h->card[h->comm->rank].named) return false;
    if (h->memory->ops->peers->open(h->memory, &h->card[rank].name, &at, &why) != HP_OK) return false;
    p->memory = at;
    return open_inbox(h, rank, p);
}

/* Maps a peer's memory and inbox if that works in both directions. */
static hp_status open_peer(const handshake *h, int rank, hp_error *err) {
    hp_peer *p = &h->peers->peer[rank];
    bool right = false;
    unsigned char theirs = 0;
    if (map_peer(h, rank, p)) HP_TRY(try_copy(h, rank, p->memory, &right, err));
    const hp_status s = exchange_byte(h->comm, rank, right, &theirs, err);
    if (s != HP_OK || !right || !theirs) close_peer(h->memory, p);
    return s;
}

/* Cards arrive after all patterns are written. After the exchange of verdicts both ranks of a pair
 * have finished reading. */
static hp_status open_all(handshake *h, peer_card *card, hp_error *err) {
    peer_card mine = {.node = hp_node_id(), .bytes = h->bytes};
    mine.named = make_inbox(h, &mine) && write_pattern(h, &mine);
    h->card = card;
    HP_TRY(hp_comm_share_bytes(h->comm, &mine, sizeof mine, card, "the names of the ranks' memories", err));
    for (int r = 0; r < h->comm->size; r++)
        if (r != h->comm->rank && card[r].node == mine.node) HP_TRY(open_peer(h, r, err));
    return h->saved ? h->memory->ops->put(h->memory, h->arena, h->before, 2 * h->bytes, err) : HP_OK;
}

hp_status hp_peers_open(hp_comm *comm, const hp_memory *memory, unsigned char *arena, int64_t bytes,
                        hp_peers *peers, hp_error *err) {
    peer_card *card = calloc((size_t)comm->size, sizeof *card);
    *peers = (hp_peers){.n = comm->size, .peer = calloc((size_t)comm->size, sizeof *peers->peer)};
    HP_ASSERT(card && peers->peer);
    handshake h = {.comm = comm,
                   .memory = memory,
                   .arena = arena,
                   .bytes = bytes < 2 * TRIAL_BYTES ? bytes / 2 : TRIAL_BYTES,
                   .peers = peers};
    const hp_status s = open_all(&h, card, err);
    hp_copy_event_free(memory, h.event);
    free(card);
    return s;
}

void hp_peers_close(hp_peers *peers, const hp_memory *memory) {
    for (int r = 0; r < peers->n; r++) close_peer(memory, &peers->peer[r]);
    hp_shared_free(peers->inbox);
    free(peers->peer);
    *peers = (hp_peers){.n = 0};
}
