/* run_tuning.c - ranks exchange their choices of kernels, one after another in ascending order. Each sends
 * only what no earlier rank has sent, so a job of identical ranks needs one round. */
#include "exec/run/run_tuning.h"

#include <stdlib.h>
#include <string.h>

static int first_rank_with_text(const double *length, int size) {
    int r = 0;
    while (r < size && length[r] <= 0) r++;
    return r;
}

/* Broadcasts rank `r`'s text to every rank; each number carries as many bytes as a double represents
 * exactly. */
static hp_status broadcast_text(hp_comm *comm, int r, int64_t length, const char *mine, char **text,
                                hp_error *err) {
    enum { EACH = 6 };
    const int64_t n = (length + EACH - 1) / EACH;
    double *value = calloc((size_t)n, sizeof *value);
    *text = calloc((size_t)n * EACH + 1, 1);
    HP_ASSERT(value && *text);
    for (int64_t i = length - 1; comm->rank == r && i >= 0; i--)
        value[i / EACH] = 256 * value[i / EACH] + (unsigned char)mine[i];
    const hp_comm_op op = {
        .kind = HP_COMM_COLLECTIVE, .group = HP_COMM_WORLD, .dtype = HP_F64, .count = n, .data = value};
    const hp_status s = hp_comm_run(comm, &op, HP_COMM_SETUP_LIMIT_S, "the other ranks' kernels", err);
    for (int64_t i = 0; s == HP_OK && i < length; i++)
        (*text)[i] = (char)(unsigned char)((uint64_t)value[i / EACH] >> 8 * (i % EACH));
    free(value);
    return s;
}

/* One round; *more is false when no rank had anything left to export. A rank that cannot import a choice does
 * not end the rounds, but exports nothing more: it might export for ever what it cannot import. */
static hp_status run_round(hp_comm *comm, const hp_tuning_ops *ops, hp_device *device, bool *more,
                           hp_status *status, hp_error *err) {
    double length[comm->size];
    hp_error why;
    char *mine = *status == HP_OK ? ops->export_choices(device) : NULL, *text = NULL;
    hp_status s =
        hp_comm_share(comm, mine ? (double)strlen(mine) : 0, length, "the other ranks' kernels", err);
    const int r = s == HP_OK ? first_rank_with_text(length, comm->size) : comm->size;
    *more = r < comm->size;
    if (*more) s = broadcast_text(comm, r, (int64_t)length[r], mine, &text, err);
    const hp_status imported = *more && s == HP_OK ? ops->import_choices(device, text, &why) : HP_OK;
    if (imported != HP_OK && *status == HP_OK) *status = hp_fail(err, imported, "%s", why.text);
    free(mine);
    free(text);
    return s;
}

hp_status hp_tuning_share(hp_comm *comm, const hp_tuning_ops *ops, hp_device *device, hp_error *err) {
    hp_status status = HP_OK;
    for (bool more = ops && comm->size > 1; more;) HP_TRY(run_round(comm, ops, device, &more, &status, err));
    return status;
}
