/* compare.c - are a file's weights the network's: as they are, or under the one prefix that makes them so? See differences.h. */
#include "exec/data/weights/prefix.h"
#include "exec/data/weights/stored.h"

enum { MOST_PREFIXES = 8 };

/* Does the file have the network's tensors, and no others, under the prefix it now has? */
static bool fits(const hp_safetensors *st, hp_st_expected *want, const hp_graph *g, hp_differences *d) {
    *d = (hp_differences){0};
    hp_st_differences(st, want, hp_stored_accepted(st, g, want), d);
    return d->n == 0;
}

static hp_status fail_rivals(const char *path, const hp_st_prefix *a, const hp_st_prefix *b, hp_error *err) {
    char one[64], other[64];
    return hp_fail(err, HP_EDATA,
                   "%s holds the weights of this network more than once, under '%s' and under '%s': write a "
                   "file with one of them",
                   path, hp_st_printable(a->prefix, one), hp_st_printable(b->prefix, other));
}

/* *taken: the only prefix under which the weights are the network's; NULL: none is. `d`: the differences under the one that
 * has most of them, *near. */
static hp_status find_prefix(hp_arena *a, const char *path, hp_safetensors *st, const hp_graph *g,
                             hp_differences *d, const hp_st_prefix **taken, const hp_st_prefix **near,
                             hp_error *err) {
    hp_st_expected *want = HP_NEW(a, hp_st_expected, g->n_param + 1);
    const int n = hp_stored_expected(g, want);
    hp_st_prefix *all;
    const int found = hp_st_prefixes(a, st, want, n, &all);
    *taken = NULL;
    *near = found > 0 && 4 * (int64_t)all[0].names > 3 * (int64_t)n ? &all[0] : NULL;
    for (int i = 0; i < found && i < MOST_PREFIXES && all[i].names == n; i++) {
        hp_safetensors_use_prefix(st, all[i].strip, all[i].prefix);
        if (!fits(st, want, g, d)) continue;
        if (*taken) return fail_rivals(path, *taken, &all[i], err);
        *taken = &all[i];
    }
    if (found > 1 && all[1].names == all[0].names) *near = NULL;
    const hp_st_prefix *use = *taken ? *taken : *near;
    hp_safetensors_use_prefix(st, use ? use->strip : "", use ? use->prefix : "");
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
    const hp_st_prefix *taken = NULL, *near = NULL;
    hp_status s = HP_OK;
    hp_safetensors_use_prefix(st, "", "");
    if (!fits(st, want, g, &d)) s = find_prefix(a, path, st, g, &d, &taken, &near, err);
    if (s == HP_OK && d.n > 0)
        s = hp_fail(
            err, HP_EDATA,
            "%s does not hold the weights of %s with %d classes: %s%s (%d in all); give weights of this "
            "network, or simulate with the --net and --classes of the file",
            path, g->net, g->classes, under(a, near), d.text, d.n);
    hp_arena_free(a);
    return s;
}

/* --- what is said of a prefix --- */

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
