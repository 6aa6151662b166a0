/* test_exchange.c - which boxes ranks send each other: exactly what the receiver's layers read and it does
 * not own, from the owner; the same boxes back with the gradients; and as many halo bytes as published. What
 * layers read is counted tap by tap. */
#include "networks/graph/branch.h"
#include "plan/strategy/layout.h"
#include "plan/program/program.h"
#include "tests/support/plan/brute_tiles.h"
#include "tests/support/plan/odd_net.h"
#include "plan/lower/lower.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const hp_box nothing = {{0}, {0}};

/* --- what parts own and need --- */

typedef struct stage {
    int first, end;
    hp_layout layout;
    int32_t *branch_of;
    int n_part;
    hp_box *lacks; /* [part * n_tensor + t]: bounding box of what a layer reads of t, if the part does not own
                    * all of it */
    hp_box *has;   /* bounding box of that and the part's own box */
} stage;

typedef struct plan {
    hp_arena *arena;
    const hp_graph *g;
    hp_strategy s;
    const hp_program *p;
    stage *stage; /* virtual */
    int n_stage;
    const bool *wanted; /* per tensor: its gradient */
    char what[HP_STRATEGY_TEXT + 64];
} plan;

static hp_box owned(const plan *c, int v, int part, int tensor) {
    const stage *s = &c->stage[v];
    if (part % c->s.bp != s->branch_of[tensor]) return nothing;
    return hp_layout_own(&s->layout, c->g, tensor, c->p->micro_batch, part / c->s.bp);
}

static void read_by(const plan *c, int v, int part, int tensor, const hp_box *need) {
    const hp_box own = owned(c, v, part, tensor);
    hp_box *lacks = &c->stage[v].lacks[part * c->g->n_tensor + tensor],
           *has = &c->stage[v].has[part * c->g->n_tensor + tensor];
    if (!hp_box_within(need, &own)) *lacks = hp_box_around(lacks, need);
    *has = hp_box_around(has, need);
}

/* The loss reads all channels of its samples and pixels, on the first channel slice. */
static void read_by_loss(const plan *c, int v, int part) {
    const int logits = c->g->layer[c->g->n_layer - 1].out;
    hp_box need = owned(c, v, part, logits);
    need.lo[HP_AXIS_C] = 0;
    need.hi[HP_AXIS_C] = c->g->tensor[logits].c;
    if (hp_box_empty(&need) || part / c->s.bp % c->s.cp) return;
    read_by(c, v, part, logits, &need);
}

static void read_part(const plan *c, int v, int part) {
    const stage *s = &c->stage[v];
    for (int t = 0; t < c->g->n_tensor; t++) s->has[part * c->g->n_tensor + t] = owned(c, v, part, t);
    for (int l = s->first ? s->first : 1; l < s->end; l++)
        for (int k = 0; k < c->g->layer[l].n_in; k++) {
            const hp_box out = owned(c, v, part, c->g->layer[l].out), need = brute_need(c->g, l, k, &out);
            read_by(c, v, part, c->g->layer[l].in[k], &need);
        }
    if (s->end == c->g->n_layer) read_by_loss(c, v, part);
}

static void cut_stages(plan *c) {
    const int n = c->g->n_tensor;
    c->n_stage = c->s.stages * c->s.chunks;
    c->stage = HP_NEW(c->arena, stage, c->n_stage);
    for (int v = 0, unit = 0; v < c->n_stage; v++) {
        stage *s = &c->stage[v];
        *s = (stage){.first = c->g->unit_first[unit],
                     .end = c->g->unit_first[unit + c->s.cut.units[v]],
                     .layout = hp_stage_layout(&c->s, v % c->s.stages),
                     .n_part = hp_stage_parts(&c->s, v % c->s.stages)};
        unit += c->s.cut.units[v];
        s->branch_of = hp_branches(c->arena, c->g, c->s.bp, s->first, s->end);
        s->lacks = HP_NEW(c->arena, hp_box, s->n_part * n);
        s->has = HP_NEW(c->arena, hp_box, s->n_part * n);
        for (int part = 0; part < s->n_part; part++) read_part(c, v, part);
    }
}

/* --- what the program moves --- */

typedef struct message {
    int peer;
    hp_box box;
    struct message *next;
} message;

/* Per slot of a role, micro-batch and tensor. */
enum { CAME, RETURNED, WAYS }; /* activations received, their gradients sent back */
typedef struct traffic {
    message **list[2][WAYS]; /* [over a stage boundary, within the stage] */
} traffic;

static int slot_index(const hp_role *r, int v, int flip) {
    for (int i = 0; i < r->n_slot; i++)
        if (r->slot[i].stage == v && r->slot[i].flip == flip) return i;
    return -1;
}

static void note(hp_arena *arena, message **list, int peer, const hp_box *box, bool again) {
    for (const message *m = *list; m; m = m->next)
        if (m->peer == peer && hp_box_equal(&m->box, box)) {
            assert_true(again); /* only recomputation brings the same once more */
            return;
        }
    message *m = HP_NEW(arena, message, 1);
    *m = (message){peer, *box, *list};
    *list = m;
}

/* Channel = ((stage * 2 + flip) * 2 + within) * 2 + backward; a boundary's stage is the one before it. */
static traffic *traffic_of(const plan *c, int role) {
    const hp_role *r = &c->p->role[role];
    traffic *all = HP_NEW(c->arena, traffic, r->n_slot);
    for (int i = 0; i < r->n_slot * 2 * WAYS; i++)
        all[i / 4].list[i / 2 % 2][i % 2] = HP_NEW(c->arena, message *, c->p->micro * c->g->n_tensor);
    for (int t = 0; t < r->n_task; t++) {
        const hp_task *task = &r->task[t];
        const hp_queue *q = &r->queue[task->queue];
        const bool backward = q->channel & 1, within = q->channel & 2;
        if (q->kind != (backward ? HP_QUEUE_SEND : HP_QUEUE_RECV)) continue;
        const int slot = slot_index(r, q->channel / 8 + !within, q->channel / 4 % 2);
        assert_true(slot >= 0);
        note(c->arena, &all[slot].list[within][backward ? RETURNED : CAME][task->message.position], q->peer,
             &r->buffer[r->operand[task->operand]].box, !backward && c->s.recompute != HP_RECOMPUTE_NONE);
    }
    return all;
}

/* --- the laws --- */

static const char *box_text(const hp_box *b) {
    static char text[4][80];
    static int next;
    char *t = text[next++ % 4];
    snprintf(t, sizeof text[0], "%d..%d,%d..%d,%d..%d,%d..%d", b->lo[0], b->hi[0], b->lo[1], b->hi[1],
             b->lo[2], b->hi[2], b->lo[3], b->hi[3]);
    return t;
}

/* The messages are disjoint, each lies within what its sender owns, and together they cover all of `want`
 * except `here`. */
static void check_came(const plan *c, const message *list, int from, int flip, int tensor, const hp_box *want,
                       const hp_box *here) {
    const hp_box have = hp_box_and(want, here);
    int64_t sum = 0;
    for (const message *m = list; m; m = m->next) {
        const hp_role *peer = &c->p->role[m->peer];
        const hp_box own = owned(c, from, peer->slot[slot_index(peer, from, flip)].part, tensor),
                     twice = hp_box_and(&m->box, here);
        bool right = hp_box_within(&m->box, want) && hp_box_within(&m->box, &own) && hp_box_empty(&twice);
        for (const message *other = m->next; other; other = other->next) {
            const hp_box both = hp_box_and(&m->box, &other->box);
            right &= hp_box_empty(&both);
        }
        if (!right)
            fail_msg("%s: tensor %d comes from rank %d, stage %d, which has %s, as %s for %s beside %s",
                     c->what, tensor, m->peer, from, box_text(&own), box_text(&m->box), box_text(want),
                     box_text(here));
        sum += hp_box_elems(&m->box);
    }
    if (sum != hp_box_elems(want) - hp_box_elems(&have))
        fail_msg("%s: of tensor %d, %lld elements come from stage %d, %lld are needed and not there", c->what,
                 tensor, (long long)sum, from, (long long)(hp_box_elems(want) - hp_box_elems(&have)));
}

static int count_messages(const message *list) {
    int n = 0;
    for (; list; list = list->next) n++;
    return n;
}

/* Gradients return to the tensor's source, in the same boxes. */
static void check_returned(const plan *c, const message *came, const message *returned, int tensor) {
    const bool wanted = c->p->mode == HP_MODE_TRAIN && c->wanted[tensor];
    if (count_messages(returned) != (wanted ? count_messages(came) : 0))
        fail_msg("%s: tensor %d comes in %d messages, its gradient goes in %d", c->what, tensor,
                 count_messages(came), count_messages(returned));
    for (const message *m = wanted ? came : NULL; m; m = m->next) {
        const message *r = returned;
        while (r && (r->peer != m->peer || !hp_box_equal(&r->box, &m->box))) r = r->next;
        if (!r) fail_msg("%s: the gradient of tensor %d does not go back as it came", c->what, tensor);
    }
}

static void check_tensor(const plan *c, const hp_role *r, const hp_slot *slot, const traffic *all, int micro,
                         int t) {
    const int v = slot->stage, at = micro * c->g->n_tensor + t, producer = c->g->tensor[t].producer;
    const stage *s = &c->stage[v];
    const bool runs = c->s.gems == 1 || micro / c->s.micro % 2 == slot->flip;
    const bool made = producer >= s->first && producer < s->end && producer > 0;
    const bool enters = v > 0 && producer < s->first && hp_graph_last_use(c->g, t) >= s->first;
    const hp_box own = owned(c, v, slot->part, t);
    check_came(c, all->list[1][CAME][at], v, slot->flip, t,
               runs && made ? &s->lacks[slot->part * c->g->n_tensor + t] : &nothing, &own);
    check_returned(c, all->list[1][CAME][at], all->list[1][RETURNED][at], t);
    const int before = v > 0 ? slot_index(r, v - 1, slot->flip) : -1; /* on the same rank */
    const hp_box here = before < 0 ? nothing : owned(c, v - 1, r->slot[before].part, t);
    check_came(c, all->list[0][CAME][at], v - 1, slot->flip, t,
               runs && enters ? &s->has[slot->part * c->g->n_tensor + t] : &nothing, &here);
    check_returned(c, all->list[0][CAME][at], all->list[0][RETURNED][at], t);
}

static void check_exchanges(const hp_graph *g, const hp_strategy *s, hp_mode mode, int64_t batch,
                            const char *of) {
    hp_arena *arena = hp_arena_new();
    hp_error err;
    hp_program *p = NULL;
    char text[HP_STRATEGY_TEXT];
    const hp_lower_options o = {.mode = mode, .dtype = HP_F32, .batch = batch};
    plan c = {.arena = arena, .g = g, .s = *s};
    snprintf(c.what, sizeof c.what, "%s, mode %d, %s", of, mode, hp_strategy_text(s, text));
    if (hp_lower(arena, g, s, &o, &p, &err) != HP_OK) fail_msg("%s: %s", c.what, err.text);
    hp_strategy_fill_cut(g, NULL, &c.s);
    c.p = p;
    cut_stages(&c);
    c.wanted = wanted_gradients(arena, g);
    for (int role = 0; role < p->n_role; role++) {
        const traffic *all = traffic_of(&c, role);
        for (int i = 0; i < p->role[role].n_slot; i++)
            for (int at = 0; at < p->micro * g->n_tensor; at++)
                check_tensor(&c, &p->role[role], &p->role[role].slot[i], &all[i], at / g->n_tensor,
                             at % g->n_tensor);
    }
    hp_arena_free(arena);
}

static void ranks_receive_what_they_read_and_do_not_own(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(2000); seed++) {
        dice d = {seed, 12000};
        char of[32];
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = any_net(arena, seed, roll(&d, 3, 8));
        const int groups = roll(&d, 1, 6);
        const hp_strategy s = random_strategy_of(&d, g, groups, 32, DRAW_ALL - DRAW_HALO);
        snprintf(of, sizeof of, "seed %llu", (unsigned long long)seed);
        check_exchanges(g, &s, coin(&d) ? HP_MODE_TRAIN : HP_MODE_INFER, hp_strategy_batch(&s, groups), of);
        hp_arena_free(arena);
    }
}

static void so_do_ranks_of_real_networks(void **state) {
    (void)state;
    static const struct {
        const char *net, *strategy;
        int h, w;
    } cases[] = {
        {"resnet18", "sp=2x2", 96, 160},
        {"resnet18", "sp=5x1:1x3,stages=3", 96, 160},
        {"resnet18", "cp=2,sp=2x1", 96, 160},
        {"unet:8", "sp=3x3", 101, 67},
        {"unet:8", "sp=2x2:2x1,stages=3", 101, 67},
        {"unet:8", "sp=2x2,stages=2,tail=shared", 101, 67},
        {"amoebanetd:3,32", "sp=2x2,stages=2,ldp=2", 96, 160},
        {"amoebanetd:3,32", "sp=2x1,stages=5,sched=gems", 96, 160},
        {"amoebanetd:3,32", "bp=2,sp=1x2", 96, 160},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hp_arena *arena = hp_arena_new();
        hp_graph *g = NULL;
        hp_strategy s;
        hp_error err;
        if (hp_net_build(arena, cases[i].net, cases[i].h, cases[i].w, 10, &g, &err) != HP_OK ||
            hp_strategy_parse(cases[i].strategy, &s, &err) != HP_OK)
            fail_msg("%s", err.text);
        check_exchanges(g, &s, HP_MODE_TRAIN, hp_strategy_batch(&s, 1), cases[i].net);
        hp_arena_free(arena);
    }
}

/* --- bytes of halos --- */

enum { MOST_CONVS = 6 };

/* Convolutions of stride 1 that keep the map's size. */
typedef struct conv_size {
    int kh, kw, in_c;
} conv_size;

static hp_graph *conv_chain(hp_arena *arena, dice *d, int n, int h, int w, conv_size *size) {
    hp_error err;
    hp_graph *g = NULL;
    hp_builder b = hp_builder_start(arena, "chain", h, w, 4, &err);
    int x = 0;
    for (int i = 0; i < n; i++) {
        size[i] = (conv_size){2 * roll(d, 0, 3) + 1, 2 * roll(d, 0, 3) + 1, b.g->tensor[x].c};
        x = hp_build_conv_rect(&b, x, "conv", roll(d, 1, 6), size[i].kh, size[i].kw);
    }
    if (hp_builder_finish(&b, &g) != HP_OK) fail_msg("%s", err.text);
    return g;
}

/* Bytes that a rank sends in one direction. */
static int64_t sent_bytes(const hp_role *r, bool backward) {
    int64_t n = 0;
    for (int t = 0; t < r->n_task; t++)
        if (r->task[t].op == HP_TASK_SEND && (r->queue[r->task[t].queue].channel & 1) == (backward ? 1 : 0))
            n += hp_task_bytes(&r->task[t]);
    return n;
}

/* MPI4DL's halo round: 4 N C (h_w H_t n_LR + h_h W_t n_TB + h_h h_w n_diag) bytes from a rank, given its
 * number of neighbours left and right, above and below, and across the corners. */
static int64_t published_bytes(const conv_size *size, int64_t samples, int tile_h, int tile_w, int lr,
                               int tb) {
    const int hh = size->kh / 2, hw = size->kw / 2;
    return 4 * samples * size->in_c * (hw * tile_h * lr + hh * tile_w * tb + hh * hw * lr * tb);
}

static hp_program *chain_program(hp_arena *arena, const hp_graph *g, int rows, int cols, int64_t samples) {
    const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = samples, .place = true};
    hp_strategy s = hp_strategy_default();
    hp_program *p = NULL;
    hp_error err;
    s.sp.n = 1;
    s.sp.rows[0] = rows;
    s.sp.cols[0] = cols;
    if (hp_lower(arena, g, &s, &o, &p, &err) != HP_OK) fail_msg("%s", err.text);
    return p;
}

/* The image includes its halo: the first convolution exchanges nothing. Gradients have as many bytes as
 * values. */
static void halo_bytes_are_the_published_ones(void **state) {
    (void)state;
    static const int grids[][2] = {{2, 2}, {1, 2}, {1, 3}, {1, 5}, {3, 1}, {3, 3}, {2, 4}};
    for (uint64_t seed = 1; seed <= law_cases(140); seed++) {
        dice d = {seed, 10000};
        hp_arena *arena = hp_arena_new();
        const int rows = grids[seed % 7][0], cols = grids[seed % 7][1], n = roll(&d, 2, MOST_CONVS);
        const int tile_h = roll(&d, 3, 9), tile_w = roll(&d, 3, 9), samples = roll(&d, 1, 3);
        conv_size size[MOST_CONVS];
        const hp_graph *g = conv_chain(arena, &d, n, rows * tile_h, cols * tile_w, size);
        const hp_program *p = chain_program(arena, g, rows, cols, samples);
        int64_t ahead = 0, back = 0;
        for (int r = 0; r < p->n_role; r++) {
            const int y = r / cols, x = r % cols;
            const int lr = (x > 0) + (x < cols - 1), tb = (y > 0) + (y < rows - 1);
            int64_t want = 0;
            for (int i = 1; i < n; i++) want += published_bytes(&size[i], samples, tile_h, tile_w, lr, tb);
            assert_int_equal(sent_bytes(&p->role[r], false), want);
            ahead += want;
            back += sent_bytes(&p->role[r], true);
        }
        assert_int_equal(ahead, back);
        hp_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_receive_what_they_read_and_do_not_own),
        cmocka_unit_test(so_do_ranks_of_real_networks),
        cmocka_unit_test(halo_bytes_are_the_published_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
