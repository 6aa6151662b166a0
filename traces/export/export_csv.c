/* export_csv.c - one line per span (RFC 4180), seconds from the trace's first span. */
#include "traces/export/trace_export.h"
#include "traces/outfile.h"
#include "traces/trace_text.h"

#include <inttypes.h>

static void write_row(FILE *f, const hp_trace *t, const hp_trace_span *s, int64_t base_ns) {
    static const hp_trace_task eval = {.role = -1, .kind = "eval", .label = "eval"};
    const hp_trace_task *k = s->task < 0 ? &eval : &t->task[s->task];
    fprintf(f, "%d,%d,%d,%d,%s,", s->rank, k->role, s->eval_task, s->iter,
            s->task < 0 ? "eval" : hp_phase_names[k->phase]);
    hp_text_csv(f, k->kind);
    fputc(',', f);
    hp_text_csv(f, k->label);
    fprintf(f, ",%.9f,%.9f,%" PRId64 "\r\n", (double)(s->t0_ns - base_ns) * 1e-9,
            (double)(s->t1_ns - base_ns) * 1e-9, k->bytes);
}

hp_status hp_export_csv(const hp_trace *t, const char *path, hp_error *err) {
    hp_outfile o;
    HP_TRY(hp_outfile_open(path, &o, err));
    int64_t base_ns = t->n_span ? t->span[0].t0_ns : 0;
    for (int64_t i = 0; i < t->n_span; i++)
        if (t->span[i].t0_ns < base_ns) base_ns = t->span[i].t0_ns;
    fputs("rank,role,task,iter,phase,kind,label,t0_s,t1_s,bytes\r\n", o.f);
    for (int64_t i = 0; i < t->n_span; i++) write_row(o.f, t, &t->span[i], base_ns);
    return hp_outfile_commit(&o, err);
}
