/* program_print.c - the task program as text and as a graph for Graphviz. */
#include "plan/base/units.h"
#include "plan/program.h"

#include <string.h>

static void put(char *out, size_t n, const char *text) {
    const size_t have = strlen(out);
    if (have < n) snprintf(out + have, n - have, "%s", text);
}

const char *hp_task_label(const hp_program *p, const hp_graph *g, const hp_role *r, int task, char *out,
                          size_t n) {
    const hp_task *t = &r->task[task];
    char part[160];
    snprintf(out, n, "%s", hp_task_infos[t->op].name);
    if (t->flags & HP_FLAG_METRIC) put(out, n, " metric");
    if (t->flags & HP_FLAG_RECOMPUTE) put(out, n, " again");
    if (t->layer >= 0) {
        snprintf(part, sizeof part, " %s", g->layer[t->layer].name);
        put(out, n, part);
    }
    const hp_queue *q = &r->queue[t->queue];
    if (q->kind == HP_QUEUE_SEND || q->kind == HP_QUEUE_RECV) {
        snprintf(part, sizeof part, "%s stage %d%s", q->kind == HP_QUEUE_SEND ? " ->" : " <-", q->peer,
                 q->channel & 1 ? " gradient" : "");
        put(out, n, part);
    }
    if (t->tag >= 0 && q->kind != HP_QUEUE_SEND && q->kind != HP_QUEUE_RECV) {
        snprintf(part, sizeof part, " bucket %d", t->tag);
        put(out, n, part);
    }
    if (t->micro >= 0 && p->micro > 1) {
        snprintf(part, sizeof part, " m%d", t->micro);
        put(out, n, part);
    }
    return out;
}

static void print_operands(FILE *f, const hp_role *r, const hp_task *t) {
    for (int i = 0; i < t->n_operand; i++) {
        const int32_t b = r->operand[t->operand + i];
        if (b < 0) {
            fputs(" -", f);
        } else {
            fprintf(f, " %%%d", b);
        }
    }
}

static void print_task(FILE *f, const hp_program *p, const hp_graph *g, const hp_role *r, int task) {
    const hp_task *t = &r->task[task];
    char label[256], size[32];
    fprintf(f, "%6d  q%-2d %-44s", task, t->queue, hp_task_label(p, g, r, task, label, sizeof label));
    print_operands(f, r, t);
    if (t->count)
        fprintf(f, "  (%s)", hp_format_bytes((double)t->count * hp_dtype_bytes((hp_dtype)t->dtype), size));
    if (r->dep_first[task] < r->dep_first[task + 1]) fputs("  after", f);
    for (int i = r->dep_first[task]; i < r->dep_first[task + 1]; i++) fprintf(f, " %d", r->dep[i]);
    fputc('\n', f);
}

void hp_program_print(FILE *f, const hp_program *p, const hp_graph *g, int role) {
    static const char *const queues[] = {"compute", "send to", "receive from", "collective"};
    const hp_role *r = &p->role[role];
    char size[32], least[32];
    fprintf(f, "stage %d: %d tasks, arena %s (most alive at once %s), %d queues\n", role, r->n_task,
            hp_format_bytes((double)r->arena_bytes, size), hp_format_bytes((double)r->live_bytes, least),
            r->n_queue);
    for (int q = 0; q < r->n_queue; q++) {
        fprintf(f, "  q%d %s", q, queues[r->queue[q].kind]);
        if (r->queue[q].kind == HP_QUEUE_COLL)
            fprintf(f, " over %s", r->queue[q].peer ? "the stage's replicas" : "all ranks");
        if (r->queue[q].kind == HP_QUEUE_SEND || r->queue[q].kind == HP_QUEUE_RECV)
            fprintf(f, " stage %d, %s", r->queue[q].peer,
                    r->queue[q].channel & 1 ? "gradients" : "activations");
        fputc('\n', f);
    }
    for (int t = 0; t < r->n_task; t++) print_task(f, p, g, r, t);
}

void hp_program_dot(FILE *f, const hp_program *p, const hp_graph *g) {
    static const char *const colours[HP_PHASES] = {"gray80", "gray90",    "palegreen", "lightsalmon",
                                                   "khaki",  "lightblue", "plum"};
    char label[256];
    fputs("digraph program {\n  rankdir=LR; node [shape=box, style=filled, fontname=\"sans-serif\"];\n", f);
    for (int s = 0; s < p->n_role; s++) {
        const hp_role *r = &p->role[s];
        fprintf(f, "  subgraph cluster_%d { label=\"stage %d\";\n", s, s);
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
