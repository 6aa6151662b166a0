/* print.c - the task program as text and as a graph for Graphviz. */
#include "plan/program/print.h"

#include "base/text.h"
#include "plan/program/operands.h"
#include "base/units.h"

#include <string.h>

/* --- tasks --- */

static const hp_buffer *operand_of(const hp_role *r, const hp_task *t, int i) {
    const int32_t b = i < t->n_operand ? r->operand[t->operand + i] : -1;
    return b < 0 ? NULL : &r->buffer[b];
}

static bool has_tensor(const hp_buffer *b) {
    return b && b->what >= 0 &&
           (b->kind == HP_BUF_TENSOR || b->kind == HP_BUF_GRADIENT || b->kind == HP_BUF_MESSAGE ||
            b->kind == HP_BUF_CODE);
}

/* The layer a task is about: its own, or the one that produces what it moves; -1: none. */
static int layer_of(const hp_graph *g, const hp_role *r, const hp_task *t) {
    const hp_buffer *b = operand_of(r, t, 0);
    if (t->layer >= 0) return t->layer;
    return has_tensor(b) ? g->tensor[b->what].producer : -1;
}

static bool is_kind(const hp_buffer *b, hp_buffer_kind kind) {
    return b && b->kind == (int)kind;
}

/* What is moved, in words: a gradient, a part of a tensor on its way between ranks, a layer's sums. */
static void add_content(hp_text out, const hp_role *r, const hp_task *t) {
    const hp_buffer *a = operand_of(r, t, 0), *b = operand_of(r, t, 1);
    const hp_queue *q = &r->queue[t->queue];
    const bool transfer = q->kind == HP_QUEUE_SEND || q->kind == HP_QUEUE_RECV, copy = t->op == HP_TASK_COPY;
    if (!transfer && !copy && t->op != HP_TASK_ZERO && !hp_task_is_collective(t)) return;
    const bool gradient = is_kind(a, HP_BUF_GRADIENT) || (copy && is_kind(b, HP_BUF_GRADIENT)) ||
                          (transfer && q->channel & HP_CHANNEL_GRADIENTS);
    if (gradient) hp_text_add(out, " gradient");
    if (transfer && q->channel & HP_CHANNEL_WITHIN) hp_text_add(out, " halo");
    if (copy && is_kind(a, HP_BUF_MESSAGE)) hp_text_add(out, " to message");
    if (copy && is_kind(b, HP_BUF_MESSAGE)) hp_text_add(out, " from message");
    if (is_kind(a, HP_BUF_SUMS)) hp_text_add(out, " sums");
}

const char *hp_task_label(const hp_program *p, const hp_graph *g, const hp_role *r, int task, char *out,
                          size_t n) {
    const hp_task *t = &r->task[task];
    const hp_queue *q = &r->queue[t->queue];
    const bool transfer = q->kind == HP_QUEUE_SEND || q->kind == HP_QUEUE_RECV;
    const int layer = layer_of(g, r, t);
    const hp_rows rows = hp_task_rows(t);
    const hp_text l = {out, n};
    snprintf(out, n, "%s", hp_task_infos[t->op].name);
    if (t->flags & HP_FLAG_METRIC) hp_text_add(l, " metric");
    if (t->flags & HP_FLAG_AVERAGE) hp_text_add(l, " average");
    if (t->flags & HP_FLAG_RECOMPUTE) hp_text_add(l, " again");
    if (layer >= 0) hp_text_add(l, " %s", g->layer[layer].name);
    add_content(l, r, t);
    if (transfer) hp_text_add(l, " %s rank %d", q->kind == HP_QUEUE_SEND ? "->" : "<-", q->peer);
    if (hp_task_bucket(t) >= 0) hp_text_add(l, " bucket %d", hp_task_bucket(t));
    if (rows.hi > rows.lo) hp_text_add(l, " rows %d-%d", rows.lo, rows.hi - 1);
    if (t->micro >= 0 && p->micro > 1) hp_text_add(l, " m%d", t->micro);
    return out;
}

/* --- roles --- */

/* Parts of a stage, counted over the roles that take part in it. */
static int count_parts(const hp_program *p, const hp_slot *of) {
    int n = 0;
    for (int r = 0; r < p->n_role; r++)
        for (int i = 0; i < p->role[r].n_slot; i++)
            n += p->role[r].slot[i].stage == of->stage && p->role[r].slot[i].flip == of->flip;
    return n;
}

/* What a role does: "stage 1 part 2 of 4 + mirrored stage 0". `out` holds n bytes. */
static const char *role_label(const hp_program *p, int role, char *out, size_t n) {
    const hp_role *r = &p->role[role];
    const hp_text t = {out, n};
    out[0] = 0;
    for (int i = 0; i < r->n_slot; i++) {
        const hp_slot *s = &r->slot[i];
        const int parts = count_parts(p, s);
        hp_text_add(t, "%s%sstage %d", i ? " + " : "", s->flip ? "mirrored " : "", s->stage);
        if (parts > 1) hp_text_add(t, " part %d of %d", s->part, parts);
    }
    return out;
}

static void print_operands(FILE *f, const hp_graph *g, const hp_role *r, const hp_task *t) {
    char name[24];
    for (int i = 0; i < t->n_operand; i++) {
        const int32_t b = r->operand[t->operand + i];
        if (b >= 0) fprintf(f, " %s %%%d", hp_operand_label(g, t, i, name, sizeof name), b);
    }
}

/* "own.ring": what carries a collective; then its root, and how it combines contributions if not by a sum. */
static const char *way_text(const hp_program *p, const hp_role *r, const hp_task *t, char *out, size_t n) {
    const hp_call call = hp_task_call(p, t);
    const hp_text l = {out, n};
    snprintf(out, n, "%s", hp_backend_names[r->queue[t->queue].backend]);
    if (t->algorithm != HP_ALGORITHM_LIBRARY) hp_text_add(l, ".%s", hp_algorithms[t->algorithm]->name);
    if (hp_collective_rooted(hp_task_collective(t))) hp_text_add(l, ", root %d", call.root);
    if (call.reduction != HP_REDUCE_SUM) hp_text_add(l, ", %s", hp_reduction_names[call.reduction]);
    if (call.n) hp_text_add(l, ", parts of their own");
    return out;
}

static void print_task(FILE *f, const hp_program *p, const hp_graph *g, const hp_role *r, int task) {
    const hp_task *t = &r->task[task];
    char label[256], size[32], way[80];
    fprintf(f, "%6d  q%-2d %-44s", task, t->queue, hp_task_label(p, g, r, task, label, sizeof label));
    const bool coll = hp_task_infos[t->op].queue == HP_QUEUE_COLL;
    print_operands(f, g, r, t);
    if (hp_task_infos[t->op].queue != HP_QUEUE_COMPUTE)
        fprintf(f, "  (%s%s%s)", hp_format_bytes((double)hp_task_bytes(t), size), coll ? ", " : "",
                coll ? way_text(p, r, t, way, sizeof way) : "");
    if (r->dep_first[task] < r->dep_first[task + 1]) fputs("  after", f);
    for (int i = r->dep_first[task]; i < r->dep_first[task + 1]; i++) fprintf(f, " %d", r->dep[i]);
    fputc('\n', f);
}

static void print_queue(FILE *f, const hp_program *p, const hp_role *r, int q) {
    static const char *const kinds[] = {"compute", "send to", "receive from", "collective"};
    const hp_queue *queue = &r->queue[q];
    fprintf(f, "  q%d %s", q, kinds[queue->kind]);
    if (queue->kind == HP_QUEUE_COLL) {
        const hp_group *g = &p->group[queue->peer];
        fprintf(f, " over group %d:", queue->peer);
        if (g->n == p->n_role) fputs(" all ranks", f);
        for (int i = 0; i < g->n && g->n < p->n_role; i++)
            fprintf(f, "%s %d", i ? "," : g->n > 1 ? " ranks" : " rank", p->member[g->first + i]);
        if (p->dp > 1) fputs(g->all_replicas ? " of every replica" : " of the same replica", f);
    }
    if (queue->kind == HP_QUEUE_SEND || queue->kind == HP_QUEUE_RECV)
        fprintf(f, " rank %d, %s%s (channel %d)", queue->peer,
                queue->channel & HP_CHANNEL_GRADIENTS ? "gradients" : "activations",
                queue->channel & HP_CHANNEL_WITHIN ? " of halos" : "", queue->channel);
    fputc('\n', f);
}

void hp_program_print(FILE *f, const hp_program *p, const hp_graph *g, int role) {
    const hp_role *r = &p->role[role];
    char size[32], least[32];
    fprintf(f, "%d tasks, arena %s (most alive at once %s), %d queues\n", r->n_task,
            hp_format_bytes((double)r->arena_bytes, size), hp_format_bytes((double)r->live_bytes, least),
            r->n_queue);
    for (int q = 0; q < r->n_queue; q++) print_queue(f, p, r, q);
    for (int t = 0; t < r->n_task; t++) print_task(f, p, g, r, t);
}

void hp_program_dot(FILE *f, const hp_program *p, const hp_graph *g) {
    static const char *const colours[HP_PHASES] = {"gray80", "gray90",    "palegreen", "lightsalmon",
                                                   "khaki",  "lightblue", "plum"};
    char label[256];
    fputs("digraph program {\n  rankdir=LR; node [shape=box, style=filled, fontname=\"sans-serif\"];\n", f);
    for (int s = 0; s < p->n_role; s++) {
        const hp_role *r = &p->role[s];
        fprintf(f, "  subgraph cluster_%d { label=\"rank %d: %s\";\n", s, s,
                role_label(p, s, label, sizeof label));
        for (int t = 0; t < r->n_task; t++)
            fprintf(f, "    t%d_%d [label=\"%s\", fillcolor=%s];\n", s, t,
                    hp_task_label(p, g, r, t, label, sizeof label),
                    colours[hp_task_infos[r->task[t].op].phase]);
        fputs("  }\n", f);
        for (int t = 0; t < r->n_task; t++)
            for (int i = r->dep_first[t]; i < r->dep_first[t + 1]; i++)
                fprintf(f, "  t%d_%d -> t%d_%d;\n", s, r->dep[i], s, t);
    }
    fputs("}\n", f);
}
