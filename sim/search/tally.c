/* tally.c - rows of two tables: by code and by family. */
#include "sim/search/tally.h"

static int row_of_code(hp_reject_code code, const hp_strategy *s) {
    return code == HP_REJECT_MEM && s->sp.n > 0 ? HP_REJECTS : (int)code;
}

static int row_of_family(const hp_strategy *s) {
    return HP_TALLY_KINDS + (int)hp_family_of(s);
}

/* A strategy that lacks only memory is a nearer miss than an illegal one. */
static bool nearer(const hp_tally_row *r, hp_reject_code code, double miss, int32_t order) {
    const bool memory = code == HP_REJECT_MEM, was = r->why.code == HP_REJECT_MEM;
    if (r->count == 0 || memory != was) return r->count == 0 || memory;
    if (miss < r->miss || miss > r->miss) return miss < r->miss;
    return order < r->order;
}

bool hp_tally_wants(const hp_tally *t, hp_reject_code code, const hp_miss *m) {
    return nearer(&t->row[row_of_code(code, m->s)], code, m->miss, m->order) ||
           nearer(&t->row[row_of_family(m->s)], code, m->miss, m->order);
}

static void add(hp_tally_row *r, const hp_reject *why, const hp_miss *m) {
    if (nearer(r, why->code, m->miss, m->order)) {
        r->miss = m->miss;
        r->order = m->order;
        r->example = *m->s;
        r->why = *why;
    }
    r->count++;
}

void hp_tally_add(hp_tally *t, const hp_reject *why, const hp_miss *m) {
    add(&t->row[row_of_code(why->code, m->s)], why, m);
    add(&t->row[row_of_family(m->s)], why, m);
}

void hp_tally_merge(hp_tally *t, const hp_tally *other) {
    for (int i = 0; i < HP_TALLY_ROWS; i++) {
        const hp_tally_row *from = &other->row[i];
        hp_tally_row *to = &t->row[i];
        const int64_t count = to->count + from->count;
        if (from->count && nearer(to, from->why.code, from->miss, from->order)) *to = *from;
        to->count = count;
    }
}
