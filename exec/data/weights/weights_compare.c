/* weights_compare.c - do a file's weights match the network's, as they are or under the one prefix that makes
 * them match? See differences.h. */
#include "exec/data/weights/prefix.h"
#include "exec/data/weights/weights_stored.h"

/* Does the file have the network's tensors, and no others, under its current prefix? */
static bool fits(const hp_safetensors *st, hp_st_expected *want, const hp_graph *g, hp_differences *d) {
    *d = (hp_differences){0};
    hp_st_differences(st, want, hp_stored_accepted(st, g, want), d);
    return d->n == 0;
}

static const char *whose(hp_arena *a, const hp_st_prefix *p) {
    char shown[64];
    return *p->prefix ? hp_arena_printf(a, "'%s'", hp_st_printable(p->prefix, shown)) : "no prefix";
}

static hp_status fail_rivals(hp_arena *a, const char *path, const hp_st_prefix *one,
                             const hp_st_prefix *other, hp_error *err) {
    return hp_fail(err, HP_EDATA,
                   "%s holds the weights of this network more than once, under %s and under %s: write a "
                   "file with one of them",
                   path, whose(a, one), whose(a, other));
}

/* *near: the prefix to use. If only one has all of the network's tensors, that one; else the one with most of
 * them, NULL: none stands out. `d`: the differences under it. A copy with extra tensors, such as the plain
 * names beside an average's, still counts: it does not yield to a copy without extras. */
static hp_status find_prefix(hp_arena *a, const char *path, hp_safetensors *st, const hp_graph *g,
                             hp_differences *d, const hp_st_prefix **near, hp_error *err) {
    hp_st_expected *want = HP_NEW(a, hp_st_expected, g->n_param + 1);
    const int n = hp_stored_expected(g, want);
    hp_st_prefix *all;
    const int found = hp_st_prefixes(a, st, want, n, &all);
    const hp_st_prefix *taken = NULL;
    *near = found > 0 && 4 * (int64_t)all[0].names > 3 * (int64_t)n ? &all[0] : NULL;
    if (found > 1 && all[1].names == all[0].names) *near = NULL;
    for (int i = 0; i < found && all[i].names == n; i++) {
        hp_safetensors_use_prefix(st, all[i].strip, all[i].prefix);
        if (!hp_st_has(st, want, hp_stored_accepted(st, g, want))) continue;
        if (taken) return fail_rivals(a, path, taken, &all[i], err);
        *near = taken = &all[i];
    }
    hp_safetensors_use_prefix(st, *near ? (*near)->strip : "", *near ? (*near)->prefix : "");
    fits(st, want, g, d);
    return HP_OK;
}

static const char *under(hp_arena *a, const hp_st_prefix *p) {
    char shown[64];
    if (!p || (!*p->prefix && !*p->strip)) return "";
    if (!*p->prefix) return hp_arena_printf(a, "without '%s' before its names, ", p->strip);
    return hp_arena_printf(a, "under its prefix '%s', ", hp_st_printable(p->prefix, shown));
}

hp_status hp_weights_compare(const char *path, hp_safetensors *st, const hp_graph *g, hp_error *err) {
    hp_arena *a = hp_arena_new();
    hp_st_expected *want = HP_NEW(a, hp_st_expected, g->n_param + 1);
    hp_differences d = {0};
    const hp_st_prefix *near = NULL;
    hp_status s = HP_OK;
    hp_safetensors_use_prefix(st, "", "");
    if (!fits(st, want, g, &d)) s = find_prefix(a, path, st, g, &d, &near, err);
    if (s == HP_OK && d.n > 0)
        s = hp_fail(
            err, HP_EDATA,
            "%s does not hold the weights of %s with %d classes: %s%s (%d in all); give weights of this "
            "network, or simulate with the --net and --classes of the file",
            path, g->net, g->classes, under(a, near), d.text, d.n);
    hp_arena_free(a);
    return s;
}

/* --- notes about a prefix --- */

static const char *left_out(hp_arena *a, const hp_safetensors *st) {
    const char *example = NULL;
    char shown[64];
    int n = 0;
    for (int i = 0; i < hp_safetensors_count(st); i++) {
        const char *name = hp_safetensors_tensor(st, i)->name;
        if (hp_safetensors_own_name(st, name)) continue;
        example = example ? example : name;
        n++;
    }
    if (n == 0) return "";
    return hp_arena_printf(a, "; what is not under it is left out: %d tensor%s, as %s", n, n == 1 ? "" : "s",
                           hp_st_printable(example, shown));
}

const char *hp_weights_prefix_note(hp_arena *a, const char *path, const hp_graph *g) {
    hp_safetensors *st;
    hp_error ignored = {0};
    char shown[64], instead[64];
    const char *note = NULL, *strip = "", *prefix = "";
    if (hp_safetensors_open(path, &st, &ignored) != HP_OK) return NULL;
    if (hp_weights_compare(path, st, g, &ignored) == HP_OK) hp_safetensors_prefix(st, &strip, &prefix);
    if (*prefix && !*strip)
        note = hp_arena_printf(a, "%s: its names are the network's after '%s'%s", path,
                               hp_st_printable(prefix, shown), left_out(a, st));
    else if (*strip)
        note =
            hp_arena_printf(a, "%s: its names are the network's with '%s' instead of '%s'%s", path,
                            hp_st_printable(prefix, shown), hp_st_printable(strip, instead), left_out(a, st));
    hp_safetensors_close(st);
    return note;
}
