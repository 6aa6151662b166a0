/* program_reference.c - messages and collectives by their definitions, on numbers with error bounds. */
#include "tests/support/plan/program_reference.h"

#include <math.h>
#include <string.h>

static const number ANYTHING = {0, (double)INFINITY};

/* Bits of the significand; 0: an integer. */
static const int mantissa_bits[HP_DTYPES] = {[HP_F32] = 24, [HP_F64] = 53, [HP_BF16] = 8, [HP_F16] = 11};

int64_t program_reference_elems(const hp_buffer *b) {
    return b->bytes / hp_dtype_bytes((hp_dtype)b->dtype);
}

/* Modulo 2^bits. */
static int64_t wrapped(hp_dtype type, int64_t v) {
    const int64_t all = INT64_C(1) << 8 * hp_dtype_bytes(type), rest = ((v % all) + all) % all;
    return type != HP_U8 && rest >= all / 2 ? rest - all : rest;
}

/* --- the beginning --- */

/* So small that a sum over all ranks is exact. */
double program_reference_first(uint64_t seed, int rank, int buffer, int64_t i, hp_dtype t) {
    const uint64_t stream = (uint64_t)rank * 1000 + (uint64_t)buffer;
    if (!mantissa_bits[t])
        return (double)wrapped(t, (int64_t)hp_rng_below(seed, stream, (uint64_t)i, 1u << 31) * 2);
    const int most = 1 << (mantissa_bits[t] < 24 ? mantissa_bits[t] - 4 : 20);
    return (double)hp_rng_below(seed, stream, (uint64_t)i, (uint64_t)(2 * most + 1)) - most;
}

bool program_reference_covers(const hp_role *r, int buffer) {
    return r->buffer[buffer].bytes > 0 && (buffer == HP_BUF_GRADS || buffer >= HP_BUF_FIXED);
}

static number **begin_rank(hp_arena *arena, const hp_role *r, int rank, uint64_t seed) {
    number **at = HP_NEW(arena, number *, r->n_buffer);
    for (int b = 0; b < r->n_buffer; b++) {
        const int64_t n = program_reference_covers(r, b) ? program_reference_elems(&r->buffer[b]) : 0;
        at[b] = n ? HP_NEW(arena, number, n) : NULL;
        for (int64_t i = 0; i < n; i++)
            at[b][i].value = program_reference_first(seed, rank, b, i, (hp_dtype)r->buffer[b].dtype);
    }
    return at;
}

/* --- reductions --- */

static number add_integers(number *const *in, int n, int64_t i, hp_dtype t, hp_reduction how) {
    int64_t sum = 0, least = INT64_MAX, most = INT64_MIN;
    for (int k = 0; k < n; k++) {
        const int64_t v = (int64_t)in[k][i].value;
        sum += v;
        least = v < least ? v : least;
        most = v > most ? v : most;
    }
    sum = wrapped(t, sum);
    const int64_t of[HP_REDUCTIONS] = {sum, least, most, sum / n};
    return (number){(double)of[how], 0};
}

/* Sums of integers that fit into the significand are exact. Otherwise each of n - 1 additions and a division
 * rounds by at most u times the sum of the magnitudes, and for subnormals by half of the smallest number. */
static number add_reals(number *const *in, int n, int64_t i, hp_dtype t, hp_reduction how) {
    double sum = 0, magnitudes = 0, bounds = 0, least = (double)INFINITY, most = -(double)INFINITY, worst = 0;
    bool exact = true;
    for (int k = 0; k < n; k++) {
        const number v = in[k][i];
        sum += v.value;
        magnitudes += fabs(v.value) + v.bound;
        bounds += v.bound;
        worst = fmax(worst, v.bound);
        least = fmin(least, v.value);
        most = fmax(most, v.value);
        exact = exact && v.bound == 0 && v.value == floor(v.value);
    }
    if (how == HP_REDUCE_MIN || how == HP_REDUCE_MAX)
        return (number){how == HP_REDUCE_MIN ? least : most, worst};
    const double u = ldexp(1, -mantissa_bits[t]), tiny = t == HP_F16 ? 0x1p-25 : 0,
                 limit = t == HP_F16 ? 6e4 : 1e37;
    const bool whole = exact && magnitudes <= ldexp(1, mantissa_bits[t]);
    const bool divides = how == HP_REDUCE_AVG && fmod(sum, n) != 0;
    if (magnitudes > limit) return ANYTHING; /* it may overflow */
    if (how == HP_REDUCE_AVG) sum /= n, bounds /= n;
    if (whole) return (number){sum, divides ? u * fabs(sum) + tiny : 0};
    return (number){sum, bounds + (n + 2) * (u * magnitudes * 1.05 + tiny)};
}

static number added(number *const *in, int n, int64_t i, hp_dtype t, hp_reduction how) {
    for (int k = 0; k < n; k++)
        if (isinf(in[k][i].bound)) return ANYTHING;
    return mantissa_bits[t] ? add_reals(in, n, i, t, how) : add_integers(in, n, i, t, how);
}

/* --- layout --- */

typedef struct call {
    hp_arena *arena;
    const hp_program *p;
    const hp_task *t; /* task of one member: all have the same parameters */
    hp_collective_case c;
    const int64_t *part;
    hp_reduction reduction;
    number **in;   /* per member: its contribution */
    number **data; /* per member: start of its data */
} call;

/* Elements that member `from` has for member `to`, or that anybody has for `to`. */
static int64_t part_of(const call *k, int from, int to) {
    if (k->c.what == HP_COLLECTIVE_ALL_TO_ALL)
        return k->part ? k->part[from * k->c.size + to] : k->t->collective.elems / k->c.size;
    if (k->part) return k->part[to];
    const int64_t each = (k->t->collective.elems + k->c.size - 1) / k->c.size,
                  left = k->t->collective.elems - to * each;
    return left < 0 ? 0 : left < each ? left : each;
}

static int64_t begin_of(const call *k, int from, int to) {
    int64_t at = 0;
    for (int i = 0; i < to; i++) at += part_of(k, from, i);
    return at;
}

static const hp_collective_info *info_of(const call *k) {
    return &hp_collective_infos[k->c.what];
}

/* --- collectives --- */

/* A copy, because the data may be written before others have read it. */
static number *contribution(const call *k, int member, const number *source) {
    const hp_blocks_of begins = info_of(k)->begins;
    const int64_t own = begins == HP_BLOCKS_OWN ? begin_of(k, 0, member) : 0;
    int64_t n = k->t->collective.elems;
    if (begins == HP_BLOCKS_OWN) n = part_of(k, 0, member);
    if (begins == HP_BLOCKS_EACH) n = begin_of(k, member, k->c.size);
    if (begins == HP_BLOCKS_ROOT && member != k->c.root) n = 0;
    number *copy = HP_NEW(k->arena, number, n + 1);
    if (n) memcpy(copy, source ? source : k->data[member] + own, sizeof *copy * (size_t)n);
    return copy;
}

/* The whole, of which members get what they are promised; for all collectives except all-to-all. */
static number *whole_of(const call *k) {
    number *whole = HP_NEW(k->arena, number, k->t->collective.elems + 1);
    for (int64_t i = 0; info_of(k)->adds && i < k->t->collective.elems; i++)
        whole[i] = added(k->in, k->c.size, i, (hp_dtype)k->t->dtype, k->reduction);
    for (int m = 0; info_of(k)->begins == HP_BLOCKS_OWN && m < k->c.size; m++)
        memcpy(whole + begin_of(k, 0, m), k->in[m], sizeof *whole * (size_t)part_of(k, 0, m));
    if (info_of(k)->begins == HP_BLOCKS_ROOT)
        memcpy(whole, k->in[k->c.root], sizeof *whole * (size_t)k->t->collective.elems);
    return whole;
}

static void hand_out(const call *k, const number *whole, int member) {
    const hp_blocks_of ends = info_of(k)->ends;
    const int64_t first = ends == HP_BLOCKS_OWN ? begin_of(k, 0, member) : 0;
    int64_t n = ends == HP_BLOCKS_OWN ? part_of(k, 0, member) : k->t->collective.elems;
    if (ends == HP_BLOCKS_ROOT && member != k->c.root) n = 0;
    if (n) memcpy(k->data[member] + first, whole + first, sizeof *whole * (size_t)n);
}

static void exchange(const call *k, int member) {
    number *to = k->data[member];
    for (int from = 0; from < k->c.size; from++) {
        const int64_t n = part_of(k, from, member);
        if (n) memcpy(to, k->in[from] + begin_of(k, from, member), sizeof *to * (size_t)n);
        to += n;
    }
}

static void do_collective(const call *k) {
    const number *whole = k->c.what == HP_COLLECTIVE_ALL_TO_ALL ? NULL : whole_of(k);
    for (int m = 0; m < k->c.size; m++) {
        for (int64_t i = 0; i < k->t->collective.elems; i++) k->data[m][i] = ANYTHING;
        if (whole)
            hand_out(k, whole, m);
        else
            exchange(k, m);
    }
}

static void replay_collective(const program_reference *f, const made_call *made, int replica) {
    const hp_program *p = f->of->p;
    const int n = hp_group_size(p, made->group), first = p->member[p->group[made->group].first];
    const hp_task *t = &p->role[first].task[made->task[first]];
    call k = {.arena = hp_arena_new(),
              .p = p,
              .t = t,
              .c = hp_task_case(p, &p->role[first], t),
              .part = hp_task_data(p, t).part,
              .reduction = (hp_reduction)hp_task_call(p, t).reduction};
    k.in = HP_NEW(k.arena, number *, n);
    k.data = HP_NEW(k.arena, number *, n);
    for (int m = 0; m < n; m++) {
        const int rank = hp_group_rank(p, made->group, replica, m), role = rank % p->n_role;
        const hp_role *r = &p->role[role];
        const hp_task *mine = &r->task[made->task[role]];
        const int32_t *buffer = r->operand + mine->operand;
        k.data[m] = f->at[rank][buffer[0]] + mine->collective.first;
        k.in[m] = contribution(&k, m, mine->n_operand > 1 ? f->at[rank][buffer[1]] : NULL);
    }
    if (k.c.what != HP_COLLECTIVE_BARRIER) do_collective(&k);
    hp_arena_free(k.arena);
}

static void replay_message(const program_reference *f, const made_call *made, int replica) {
    const hp_program *p = f->of->p;
    const hp_role *from = &p->role[made->from], *to = &p->role[made->to];
    const hp_task *send = &from->task[made->task[made->from]], *recv = &to->task[made->task[made->to]];
    const number *out = f->at[replica * p->n_role + made->from][from->operand[send->operand]];
    number *in = f->at[replica * p->n_role + made->to][to->operand[recv->operand]];
    memcpy(in, out, sizeof *in * (size_t)send->message.elems);
}

program_reference program_reference_make(hp_arena *arena, const collective_program *made, uint64_t seed) {
    const hp_program *p = made->p;
    program_reference f = {made, seed, HP_NEW(arena, number **, hp_program_ranks(p))};
    for (int r = 0; r < hp_program_ranks(p); r++)
        f.at[r] = begin_rank(arena, &p->role[r % p->n_role], r, seed);
    for (int i = 0; i < made->n_call; i++) {
        const made_call *c = &made->call[i];
        const bool once = c->group >= 0 && p->group[c->group].all_replicas;
        for (int replica = 0; replica < (once ? 1 : p->dp); replica++)
            (c->group >= 0 ? replay_collective : replay_message)(&f, c, replica);
    }
    return f;
}
