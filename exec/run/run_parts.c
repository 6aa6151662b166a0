/* run_parts.c - see run_parts.h. */
#include "exec/run/run_parts.h"

#include <string.h>

static int64_t bytes_of(const hp_program *p, int64_t elems) {
    return elems * hp_dtype_bytes((hp_dtype)p->dtype);
}

/* Places of the rank's part of a bucket: among all of its parameters, and among the parts. */
typedef struct part_at {
    int64_t whole, parts, bytes;
} part_at;

static part_at place_of(const hp_program *p, int role, int replica, const hp_bucket *b) {
    const int member = b->parts > 1 ? hp_group_member(p, b->group, role, replica) : 0;
    return (part_at){bytes_of(p, b->first + member * hp_bucket_part(b)), bytes_of(p, b->shard),
                     bytes_of(p, hp_bucket_part(b))};
}

void hp_parts_split(const hp_program *p, int role, int replica, const unsigned char *whole,
                    unsigned char *parts) {
    const hp_role *r = &p->role[role];
    for (int i = 0; i < r->n_bucket; i++) {
        const part_at at = place_of(p, role, replica, &r->bucket[i]);
        memcpy(parts + at.parts, whole + at.whole, (size_t)at.bytes);
    }
}

/* The buckets of one group, in memory order. */
static hp_status gather_group(hp_comm *comm, const hp_program *p, int role, int group, unsigned char *whole,
                              double limit_s, hp_error *err) {
    const hp_role *r = &p->role[role];
    for (int i = 0; i < r->n_bucket; i++) {
        const hp_bucket *b = &r->bucket[i];
        if (b->group != group || b->parts < 2) continue;
        const hp_comm_op op = {.kind = HP_COMM_COLLECTIVE,
                               .what = HP_COLLECTIVE_ALL_GATHER,
                               .group = group,
                               .dtype = p->dtype,
                               .count = b->count,
                               .data = whole + bytes_of(p, b->first)};
        HP_TRY(hp_comm_run(comm, &op, limit_s, "parameters of other ranks", err));
    }
    return HP_OK;
}

hp_status hp_parts_join(hp_comm *comm, const hp_program *p, int role, int replica, const unsigned char *parts,
                        unsigned char *whole, double limit_s, hp_error *err) {
    const hp_role *r = &p->role[role];
    for (int i = 0; i < r->n_bucket; i++) {
        const part_at at = place_of(p, role, replica, &r->bucket[i]);
        memcpy(whole + at.whole, parts + at.parts, (size_t)at.bytes);
    }
    for (int group = 0; group < p->n_group; group++) /* in one order on all ranks */
        HP_TRY(gather_group(comm, p, role, group, whole, limit_s, err));
    return HP_OK;
}
