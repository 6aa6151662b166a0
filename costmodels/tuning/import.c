/* import.c - passes the lines of a text to the tool that wrote them, determines the placement of its ranks,
 * and makes rows from its times. */
#include "costmodels/tuning/import_text.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static const import_tool *const tools[] = {&hp_import_nccl_tests, &hp_import_osu, NULL};

hp_import *hp_import_new(hp_arena *arena, const hp_import_options *o) {
    hp_import *i = HP_NEW(arena, hp_import, 1);
    *i = (hp_import){.arena = arena, .o = *o};
    return i;
}

const char *hp_import_left_out(const hp_import *i) {
    return i->left_out;
}

/* --- for the tools --- */

hp_status hp_import_bad(const hp_import *i, const char *what, const char *text, hp_error *err) {
    return hp_fail(err, HP_EDATA, "%.200s line %d: %s: '%.80s'", i->where, i->line, what, text);
}

int hp_import_words(char *line, char **word, int most) {
    int n = 0;
    char *rest = line;
    for (char *w = strtok_r(line, " \t\r", &rest); w && n < most; w = strtok_r(NULL, " \t\r", &rest))
        word[n++] = w;
    return n;
}

bool hp_import_number(const char *word, double *value) {
    char *end;
    *value = strtod(word, &end);
    return end != word && *end == 0 && isfinite(*value);
}

int hp_import_find(const char *name) {
    char plain[40];
    size_t n = 0;
    for (const char *c = name; *c && n + 1 < sizeof plain; c++)
        if (isalnum((unsigned char)*c)) plain[n++] = (char)tolower((unsigned char)*c);
    plain[n] = 0;
    if (strcmp(plain, "sendrecv") == 0) return IMPORT_MESSAGES;
    const int what = hp_collective_find(plain);
    return what < 0 ? IMPORT_UNKNOWN : what;
}

void hp_import_leave_out(hp_import *i, const char *name) {
    const size_t used = strlen(i->left_out);
    if (!strstr(i->left_out, name))
        snprintf(i->left_out + used, sizeof i->left_out - used, "%s%.60s", used ? ", " : "", name);
}

/* --- where the ranks were --- */

static hp_status per_host(const hp_import *i, int32_t *per_node, hp_error *err) {
    *per_node = i->s.on_host[0];
    for (int h = 1; h < i->s.n_host; h++)
        if (i->s.on_host[h] != *per_node)
            return hp_fail(
                err, HP_EDATA,
                "%.200s line %d: %d ranks on %.60s, but %d on %.60s: rows are of equal numbers on all nodes",
                i->where, i->line, i->s.on_host[0], i->s.host[0], i->s.on_host[h], i->s.host[h]);
    return HP_OK;
}

static hp_status agree(const hp_import *i, const char *option, int32_t said, int32_t *value, hp_error *err) {
    if (said && *value && said != *value)
        return hp_fail(err, HP_EUSAGE, "%s %d: %.200s line %d says %d; leave the option out", option, said,
                       i->where, i->line, *value);
    if (said) *value = said;
    if (*value) return HP_OK;
    return hp_fail(
        err, HP_EUSAGE,
        "%.200s line %d: the text does not say how many ranks there were, and how many on each node: add "
        "--ranks N --per-node N",
        i->where, i->line);
}

static hp_status check_memory(const hp_import *i, hp_error *err) {
    const hp_machine *m = i->o.machine;
    if (i->s.gpus == !m->device.is_cpu) return HP_OK;
    return hp_fail(err, HP_EUSAGE,
                   "%.200s line %d: measured between %s, but the devices of machine %s are %s: %s", i->where,
                   i->line, i->s.gpus ? "GPUs" : "the memories of hosts (MPI, not MPI-CUDA)", m->name,
                   m->device.is_cpu ? "processors" : "GPUs",
                   i->s.gpus ? "name the machine that was measured with --machine"
                             : "measure with -d cuda, or name another --machine");
}

hp_status hp_import_ranks(const hp_import *i, int32_t *ranks, int32_t *per_node, hp_error *err) {
    HP_TRY(check_memory(i, err));
    *ranks = i->s.ranks;
    HP_TRY(per_host(i, per_node, err));
    HP_TRY(agree(i, "--ranks", i->o.ranks, ranks, err));
    HP_TRY(agree(i, "--per-node", i->o.per_node, per_node, err));
    if (*per_node > *ranks) *per_node = *ranks;
    if (*ranks < 2)
        return hp_fail(
            err, HP_EDATA,
            "%.200s line %d: of one rank, which communicates with nobody; if there were several, nccl-tests "
            "was built without MPI=1",
            i->where, i->line);
    if (*per_node <= i->o.machine->devices_per_node) return HP_OK;
    return hp_fail(err, HP_EUSAGE,
                   "%.200s line %d: %d ranks on a node, but machine %s has %d devices on each; name the "
                   "machine that was "
                   "measured with --machine",
                   i->where, i->line, *per_node, i->o.machine->name, i->o.machine->devices_per_node);
}

/* --- points --- */

/* Who measured and when; '|' separates the fields of a row and is replaced. */
static const char *source_of(const hp_import *i) {
    const char *slash = strrchr(i->where, '/');
    char *s = hp_arena_printf(i->arena, "%s%s%s%s, %.80s of %s",
                              i->o.machine->device.is_cpu ? "" : "never run: ", i->s.tool,
                              *i->s.library ? ", " : "", i->s.library, slash ? slash + 1 : i->where, i->date);
    for (char *c = s; *c; c++)
        if (*c == '|') *c = '/';
    return s;
}

static hp_status check_algorithm(const hp_import *i, hp_error *err) {
    const hp_algorithm_ops *a = hp_algorithms[i->o.algorithm];
    if (i->o.algorithm == HP_ALGORITHM_LIBRARY || (i->s.op >= 0 && a->does & 1u << i->s.op)) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "--algorithm %s: %.200s line %d is of %s, which it does not do", a->name,
                   i->where, i->line, i->s.op >= 0 ? hp_collective_infos[i->s.op].name : "messages");
}

hp_status hp_import_add(hp_import *i, double bytes, double seconds, hp_error *err) {
    import_point p = {.kind = i->s.op == IMPORT_MESSAGES ? HP_ROW_P2P : HP_ROW_COLLECTIVE, .bytes = bytes};
    HP_TRY(hp_import_ranks(i, &p.call.ranks, &p.call.per_node, err));
    HP_TRY(check_algorithm(i, err));
    p.seconds = seconds;
    p.predicted = strcmp(i->s.library, "predicted") == 0;
    p.call.by = i->s.by;
    p.call.what =
        i->s.op == IMPORT_MESSAGES ? HP_COLLECTIVE_BROADCAST : (hp_collective)i->s.op; /* moves it once */
    HP_TRY(hp_import_algorithm(i, &p.call, bytes, err));
    p.where = hp_arena_printf(i->arena, "%.200s line %d", i->where, i->line);
    p.source = source_of(i);
    HP_ROOM(i->arena, i->point, i->n, i->capacity);
    i->point[i->n++] = p;
    return HP_OK;
}

/* --- a text --- */

static hp_status take_line(hp_import *i, char *line, hp_error *err) {
    for (const import_tool *const *t = tools; *t; t++) {
        if (!(*t)->begins(line)) continue;
        if (i->tool != *t || i->table) { /* a run after another */
            i->s = (import_section){.op = IMPORT_UNKNOWN};
            i->table = false;
        }
        i->tool = *t;
        break;
    }
    return i->tool ? i->tool->line(i, line, err) : HP_OK;
}

hp_status hp_import_text(hp_import *i, const char *text, const char *where, const char *date, hp_error *err) {
    const import_lines l = hp_import_lines(i->arena, text, tools);
    const int before = i->n;
    const bool left_out = *i->left_out;
    i->where = where;
    i->date = date;
    i->line = 0;
    i->tool = NULL;
    i->table = false;
    for (int k = 0; k < l.n; k++) {
        i->line++;
        HP_TRY(take_line(i, l.line[k], err));
    }
    if (i->n > before || left_out != (bool)*i->left_out) return HP_OK;
    if (l.n_form > 0)
        return hp_fail(
            err, HP_EDATA,
            "%.200s holds no times: it has the title of a table, but no row under it that begins as "
            "the title does ('%.40s') and has a size above 0",
            where, l.form[0]);
    return hp_fail(err, HP_EDATA,
                   "%.200s holds no times of nccl-tests or hplan bench comm ('# size count type redop ... "
                   "time algbw busbw') nor of the "
                   "OSU micro-benchmarks ('# OSU MPI Allreduce Latency Test', '# Size Avg Latency(us)')",
                   where);
}
