/* check_refuse.c - says which task of a program is refused, and why. */
#include "plan/check/check_inside.h"
#include "plan/program/print.h"

#include <stdarg.h>

hp_status hp_check_refuse(const hp_check_at *at, const char *code, const char *fmt, ...) {
    char what[400], label[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (at->task < 0) return hp_fail(at->err, HP_EPLAN, "%s: rank %d: %s", code, at->role, what);
    return hp_fail(at->err, HP_EPLAN, "%s: rank %d task %d (%s): %s", code, at->role, at->task,
                   hp_task_label(at->p, at->g, &at->p->role[at->role], at->task, label, sizeof label), what);
}
