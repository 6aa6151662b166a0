/* check_buckets.c - buckets of trained parameters: memory order, equal parts, one group per bucket, and the
 * tasks that use them. */
#include "plan/check/check_inside.h"
#include "networks/graph/optimizer.h"

#define REFUSE(...) return hp_fail(err, HP_EPLAN, __VA_ARGS__)

/* Number of parts into which the holders divide a bucket. */
static int parts_of(const hp_program *p, const hp_bucket *b) {
    return p->zero && b->group >= 0 ? hp_group_size(p, b->group) : 1;
}

hp_status hp_check_bucket_list(const hp_program *p, int role, hp_error *err) {
    const hp_role *r = &p->role[role];
    int64_t end = 0, shard = 0;
    for (int i = 0; i < r->n_bucket; i++) {
        const hp_bucket *b = &r->bucket[i];
        if (b->group < -1 || b->group >= p->n_group ||
            (b->group >= 0 && !hp_group_has_role(p, b->group, role)))
            REFUSE("E-RANGE: rank %d: bucket %d is of group %d, of which the rank is no member", role, i,
                   b->group);
        if (b->first != end || b->shard != shard || b->count < 1 || b->count > r->trained_elems - end ||
            b->parts != parts_of(p, b) || b->count % b->parts)
            REFUSE(
                "E-RANGE: rank %d: bucket %d (elements %lld+%lld in %d parts) does not follow the one before",
                role, i, (long long)b->first, (long long)b->count, b->parts);
        end += b->count;
        shard += hp_bucket_part(b);
    }
    if (end != r->trained_elems)
        REFUSE("E-RANGE: rank %d: buckets hold %lld of %lld elements", role, (long long)end,
               (long long)r->trained_elems);
    return HP_OK;
}

/* Parameters lie in their buckets, both in memory order; a bucket starts with its matrices
 * (plan/program/update.h). */
static hp_status check_inside(const hp_program *p, const hp_graph *g, int role, const hp_placed *l,
                              hp_error *err) {
    const hp_role *r = &p->role[role];
    for (int i = 0, k = 0; i < l->n; i++) {
        const hp_param_place *at = &r->place[l->param[i]];
        while (k < r->n_bucket && at->offset >= r->bucket[k].first + r->bucket[k].count) k++;
        const hp_bucket *b = k < r->n_bucket ? &r->bucket[k] : NULL;
        const hp_param_place *before = i > 0 ? &r->place[l->param[i - 1]] : NULL;
        if (b && before && before->offset >= b->first && hp_param_is_matrix(&g->param[l->param[i]]) &&
            !hp_param_is_matrix(&g->param[l->param[i - 1]]))
            REFUSE("E-MATCH: rank %d: the matrix %s lies after %s in its bucket", role,
                   g->param[l->param[i]].name, g->param[l->param[i - 1]].name);
        if (!b || at->offset + at->count > b->first + b->count || at->group != b->group)
            REFUSE("E-MATCH: rank %d: parameter %s lies in no bucket of its group", role,
                   g->param[l->param[i]].name);
    }
    return HP_OK;
}

static hp_status check_blocks(const hp_program *p, int role, hp_error *err) {
    const hp_role *r = &p->role[role];
    for (int i = HP_BUF_FIXED; i < r->n_buffer; i++) {
        const hp_buffer *b = &r->buffer[i];
        if (b->kind != HP_BUF_BLOCK) continue;
        if (b->what < 0 || b->what >= r->n_bucket || b->dtype != p->dtype || b->micro != -1 ||
            b->bytes != r->bucket[b->what].count * hp_dtype_bytes((hp_dtype)p->dtype))
            REFUSE("E-RANGE: rank %d: block %d is not as large as bucket %d", role, i, b->what);
    }
    return HP_OK;
}

hp_status hp_check_buckets(const hp_program *p, const hp_graph *g, hp_error *err) {
    hp_status s = HP_OK;
    for (int role = 0; role < p->n_role && s == HP_OK; role++) {
        hp_arena *arena = hp_arena_new();
        const hp_placed l = hp_placed_params(arena, &p->role[role], g, true);
        s = check_inside(p, g, role, &l, err);
        if (s == HP_OK) s = check_blocks(p, role, err);
        hp_arena_free(arena);
    }
    return s;
}

/* Does the task copy one part between a block and the buffer of parts? */
static bool is_part(const hp_program *p, const hp_role *r, const hp_task *t) {
    const int32_t dst = r->operand[t->operand], src = r->operand[t->operand + 1];
    const bool taken = dst == HP_BUF_GRADS && src >= HP_BUF_FIXED,
               put = src == HP_BUF_WEIGHTS && dst >= HP_BUF_FIXED;
    const int32_t block = taken ? src : dst;
    return (taken || put) && r->buffer[block].kind == HP_BUF_BLOCK &&
           r->buffer[block].what == t->update.bucket && hp_keeps_parts(p, taken ? dst : src) &&
           (taken || !(t->flags & HP_FLAG_ADD));
}

hp_status hp_check_bucket_task(const hp_check_at *at) {
    const hp_role *r = &at->p->role[at->role];
    const hp_task *t = &r->task[at->task];
    const int32_t bucket = hp_task_bucket(t);
    const hp_elements range = hp_task_range(t);
    if (bucket < 0 || bucket >= r->n_bucket)
        return hp_check_refuse(at, "E-RANGE", "bucket %d does not exist", bucket);
    const hp_bucket *b = &r->bucket[bucket];
    if (range.first != b->first || range.count != b->count)
        return hp_check_refuse(at, "E-RANGE", "elements %lld+%lld are not those of bucket %d",
                               (long long)range.first, (long long)range.count, bucket);
    if (t->op == HP_TASK_PART && !is_part(at->p, r, t))
        return hp_check_refuse(at, "E-TYPE", "is not between a block of bucket %d and a buffer of parts",
                               bucket);
    return HP_OK;
}
