/* test_saves.c - a save that ends anywhere leaves the previous checkpoint or its own; altered files are
 * refused. */
#define _GNU_SOURCE /* nftw */
#include "checkpoints/shards.h"
#include "checkpoints/checkpoint_folder.h"
#include "base/hash.h"
#include "tests/support/plan/flips.h"
#include "tests/support/plan/law_cases.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>
#include <cmocka.h>

enum { RANKS = 2, COUNT = 12 };

/* --- a checkpoint of two ranks --- */

static hp_param PARAM[] = {{.name = "w", .count = RANKS * COUNT, .n_dim = 2, .dim = {RANKS, COUNT}}};
static const hp_graph GRAPH = {.n_param = 1, .param = PARAM};

static float value(int64_t step, int64_t e) {
    return (float)(1000 * step + e) + 0.25f;
}

static hp_status save_rank(const hp_disk_ops *disk, const char *dir, int64_t step, int rank,
                           hp_chunks *chunks, hp_error *err) {
    const hp_state_piece piece = {
        .kind = HP_STATE_WEIGHTS, .home = true, .first = rank * COUNT, .count = COUNT};
    float data[COUNT];
    for (int i = 0; i < COUNT; i++) data[i] = value(step, piece.first + i);
    return hp_checkpoint_put(disk, dir, step, rank, &GRAPH, &piece, 1, HP_F32, data, chunks, err);
}

static hp_manifest manifest_of(int64_t step, hp_chunks *file) {
    return (hp_manifest){.net = "n",
                         .model = "",
                         .seed = "1",
                         .dtype = "F32",
                         .data_hash = "",
                         .optimizer = "sgd",
                         .lr_schedule = "constant",
                         .data = "d",
                         .layout = "l",
                         .strategy = "dp=2",
                         .lr = 0.1,
                         .ranks = RANKS,
                         .step = step,
                         .loss = 0.5,
                         .file = file};
}

static hp_status save(const hp_disk_ops *disk, const char *dir, int64_t step, hp_error *err) {
    hp_chunks file[RANKS] = {0};
    hp_status s = hp_disk_folder(disk, dir, err);
    for (int r = 0; r < RANKS && s == HP_OK; r++) s = save_rank(disk, dir, step, r, &file[r], err);
    const hp_manifest m = manifest_of(step, file);
    if (s == HP_OK) s = hp_checkpoint_commit(disk, dir, &m, 1, err);
    for (int r = 0; r < RANKS; r++) free(file[r].hash);
    return s;
}

/* The step whose values load; 0: none does. */
static int64_t load(const char *dir, hp_error *err) {
    hp_arena *a = hp_arena_new();
    int64_t *step, found = 0, missing = 0;
    int n = 0;
    float out[RANKS * COUNT];
    if (hp_checkpoint_list(a, dir, &step, &n, err) != HP_OK) n = 0;
    for (int i = 0; i < n && !found; i++) {
        hp_manifest m;
        hp_shards *s = NULL;
        if (hp_checkpoint_read(a, dir, step[i], &m, err) != HP_OK ||
            hp_checkpoint_verify(a, dir, &m, 0, 1, err) != HP_OK || hp_shards_open(dir, &m, &s, err) != HP_OK)
            continue;
        assert_int_equal(hp_shards_read(s, HP_STATE_WEIGHTS, "w", 0, RANKS * COUNT, HP_SHARDS_ALL, HP_F32,
                                        out, &missing, err),
                         HP_OK);
        assert_int_equal(missing, 0);
        for (int e = 0; e < RANKS * COUNT; e++) assert_true(out[e] == value(step[i], e));
        hp_shards_close(s);
        found = step[i];
    }
    hp_arena_free(a);
    return found;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)type, (void)at;
    return remove(path);
}

/* In memory if possible: the test itself simulates the disk, and fsync takes a tenth of a second on some
 * disks. */
static void fresh(char dir[64]) {
    snprintf(dir, 64, "%s/hplan-saves-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(dir));
}

static void drop(const char *dir) {
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* --- a disk that fails at its k-th call --- */

typedef enum failure { DIES, DIES_HALF_WAY, LOSES_POWER, FAILS_ONCE, FAILS_FOR_EVER, FAILURES } failure;
enum { DRAWS = 10 };     /* samples of what a loss of power takes */
static int calls, fatal; /* this process's */
static failure how;

/* --- what the kernel has not been told to put on the disk: POSIX promises bytes after fsync of the file,
 * names after fsync of their folder, and nothing of the order of what was not synced --- */

typedef struct change {
    enum { CREATED, WRITTEN, MADE, RENAMED, UNLINKED } kind;
    char path[256], other[256]; /* RENAMED: to; UNLINKED: where it is kept */
    bool safe;
} change;
static change changed[256];
static int n_changed;
static char lost[64]; /* folder of what was unlinked; on the same disk */

static void path_of(int fd, char path[256]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, 255);
    path[n > 0 ? n : 0] = '\0';
}

static void note(int kind, const char *path, const char *other) {
    change *c = &changed[n_changed++];
    assert_true(n_changed < 256);
    *c = (change){.kind = kind};
    snprintf(c->path, sizeof c->path, "%s", path);
    snprintf(c->other, sizeof c->other, "%s", other);
}

static bool lies_in(const char *path, const char *folder) {
    const size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && path[n] == '/' && !strchr(path + n + 1, '/');
}

static void note_synced(const char *path) {
    for (int i = 0; i < n_changed; i++)
        if (changed[i].kind == WRITTEN ? strcmp(changed[i].path, path) == 0 : lies_in(changed[i].path, path))
            changed[i].safe = true;
}

/* Undone are some of the changes that are not safe, the last first; what cannot be undone any more is not. */
static void lose_power(void) {
    for (int i = n_changed; i-- > 0;) {
        const change *c = &changed[i];
        struct stat st;
        if (c->safe || random() % 2) continue;
        if (c->kind == CREATED) unlink(c->path);
        if (c->kind == MADE) rmdir(c->path);
        if (c->kind == RENAMED) rename(c->other, c->path);
        if (c->kind == UNLINKED) link(c->other, c->path);
        if (c->kind == WRITTEN && stat(c->path, &st) == 0 && st.st_size > 0)
            assert_int_equal(truncate(c->path, random() % st.st_size), 0);
    }
}

/* Does this call fail? Does the process end? */
static bool strikes(void) {
    calls++;
    if (calls < fatal || (calls > fatal && how != FAILS_FOR_EVER)) return false;
    if (how == LOSES_POWER) lose_power();
    if (how == DIES || how == LOSES_POWER) _exit(9);
    errno = ENOSPC;
    return true;
}

static int bad_create(const char *path) {
    if (strikes()) return -1;
    note(CREATED, path, "");
    return hp_disk.create(path);
}
static ssize_t bad_write(int fd, const void *data, size_t bytes) {
    char path[256];
    if (strikes()) {
        if (how != DIES_HALF_WAY) return -1;
        assert_true(write(fd, data, bytes / 2) >= 0);
        _exit(9);
    }
    path_of(fd, path);
    note(WRITTEN, path, "");
    return write(fd, data, bytes);
}
static int bad_fsync(int fd) {
    char path[256];
    if (strikes()) return -1;
    path_of(fd, path);
    note_synced(path);
    return fsync(fd);
}
static int bad_mkdir(const char *path, mode_t mode) {
    if (strikes()) return -1;
    const int result = mkdir(path, mode);
    if (result == 0) note(MADE, path, "");
    return result;
}
static int bad_rename(const char *from, const char *to) {
    if (strikes()) return -1;
    const int result = rename(from, to);
    if (result == 0) note(RENAMED, from, to);
    return result;
}
static int bad_unlink(const char *path) {
    char kept[128];
    if (strikes()) return -1;
    snprintf(kept, sizeof kept, "%s/%d-%d", lost, (int)getpid(), calls);
    if (how == LOSES_POWER && link(path, kept) == 0) note(UNLINKED, path, kept);
    return unlink(path);
}
static const hp_disk_ops BAD = {bad_create, bad_write, bad_fsync, bad_mkdir, bad_rename, bad_unlink};

/* Saves in a process of its own, which may die, and fails at call k. Returns the outcome; *all: the calls it
 * made. */
static int save_badly(const char *dir, int64_t step, int k, failure f, int draw) {
    const pid_t child = fork();
    if (child == 0) {
        hp_error err;
        calls = n_changed = 0, fatal = k, how = f;
        srandom((unsigned)(1000 * k + draw));
        const hp_status s = save(&BAD, dir, step, &err);
        if (how == LOSES_POWER) lose_power(); /* what was said to be saved is */
        _exit(s == HP_OK ? (calls < k ? 100 : 0) : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Saves step 2 beside step 1, failing at call k. Returns the step that then loads; *code: the save's
 * outcome. */
static int64_t step_after(int k, failure f, int draw, int *code) {
    char dir[64];
    hp_error err;
    fresh(dir);
    assert_int_equal(save(&hp_disk, dir, 1, &err), HP_OK);
    *code = save_badly(dir, 2, k, f, draw);
    const int64_t step = load(dir, &err);
    if (step != 1 && step != 2)
        fail_msg("failure %d at call %d, draw %d: nothing loads: %s", f, k, draw, err.text);
    assert_true((*code != 0 && *code != 100) || step == 2); /* what is said to be there is */
    /* and the next run's save works */
    hp_checkpoint_clean(&hp_disk, dir);
    if (step == 1) assert_int_equal(save(&hp_disk, dir, 2, &err), HP_OK);
    assert_int_equal(save(&hp_disk, dir, 3, &err), HP_OK);
    assert_int_equal(load(dir, &err), 3);
    drop(dir);
    return step;
}

static void a_save_that_ends_anywhere_leaves_one_that_loads(void **state) {
    (void)state;
    fresh(lost);
    for (int f = 0; f < FAILURES; f++) {
        int k = 1, old = 0, new = 0;
        for (int code = 0; code != 100; k++)
            for (int draw = 0; draw < (f == LOSES_POWER ? DRAWS : 1); draw++)
                step_after(k, (failure)f, draw, &code) == 1 ? old++ : new ++;
        assert_true(k > 15 && old > 10 && new > 1); /* both outcomes were seen */
    }
    drop(lost);
}

/* --- damage --- */

static const char *const FILES[] = {"manifest.json", "rank-0.safetensors", "rank-1.safetensors"};

static void saved_path(const char *dir, const char *name, char path[256]) {
    snprintf(path, 256, "%s/step-000000000001/%s", dir, name);
}

/* What the manifest of step 1 says, to be freed. */
static char *manifest_text_of(const char *dir) {
    hp_arena *a = hp_arena_new();
    hp_manifest m;
    hp_error err;
    assert_int_equal(hp_checkpoint_read(a, dir, 1, &m, &err), HP_OK);
    char *text = hp_manifest_text(&m);
    hp_arena_free(a);
    return text;
}

static long read_file(const char *dir, const char *name, char path[256], char *data, long room) {
    saved_path(dir, name, path);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const long n = (long)fread(data, 1, (size_t)room, f);
    fclose(f);
    assert_true(n > 0 && n < room);
    return n;
}

static void write_file(const char *path, const char *data, long n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, (size_t)n, f), n);
    assert_int_equal(fclose(f), 0);
}

typedef struct damaged {
    const char *dir, *file, *manifest;
} damaged;

/* load compares every value: what it accepts is what was written. White space of the manifest may differ. */
static bool flip_is_seen(const void *self, size_t at, unsigned char mask) {
    const damaged *d = self;
    hp_error err;
    if (load(d->dir, &err) != 1) return true;
    if (d->file != FILES[0]) fail_msg("%s loads with byte %zu changed by %02x", d->file, at, mask);
    char *text = manifest_text_of(d->dir);
    if (strcmp(text, d->manifest) != 0) fail_msg("another manifest loads: byte %zu, bits %02x", at, mask);
    free(text);
    return false;
}

static void every_flipped_byte_is_seen(void **state) {
    (void)state;
    char dir[64], path[256];
    hp_error err;
    flips_count all = {0};
    fresh(dir);
    assert_int_equal(save(&hp_disk, dir, 1, &err), HP_OK);
    char *manifest = manifest_text_of(dir);
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        const damaged d = {dir, FILES[i], manifest};
        saved_path(dir, FILES[i], path);
        const flips_count c = flips_try(path, law_cases(1000), flip_is_seen, &d);
        all.refused += c.refused, all.tried += c.tried;
        assert_int_equal(load(dir, &err), 1);
    }
    free(manifest);
    print_message("%zu of %zu flips refused, the others change nothing\n", all.refused, all.tried);
    assert_true(all.refused > all.tried * 8 / 10);
    drop(dir);
}

static void every_length_but_the_right_one_is_refused(void **state) {
    (void)state;
    char dir[64], path[256], data[8192];
    hp_error err;
    fresh(dir);
    assert_int_equal(save(&hp_disk, dir, 1, &err), HP_OK);
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        const long n = read_file(dir, FILES[i], path, data, sizeof data);
        data[n] = 'x';
        for (long at = 0; at <= n + 1; at++) {
            write_file(path, data, at);
            if (at != n) assert_int_equal(load(dir, &err), 0);
        }
        unlink(path);
        assert_int_equal(load(dir, &err), 0);
        assert_int_equal(symlink("/dev/zero", path), 0);
        assert_int_equal(load(dir, &err), 0);
        unlink(path);
        write_file(path, data, n);
        assert_int_equal(load(dir, &err), 1);
    }
    drop(dir);
}

/* --- a stranger's manifest, whose own hash is right --- */

static void rewrite(const char *path, const char *data, long n, const char *key, json_t *value) {
    json_t *root = json_loadb(data, (size_t)n, 0, NULL);
    assert_non_null(root);
    json_object_del(root, "hash");
    json_object_set_new(root, key, value);
    char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    json_object_set_new(root, "hash", json_string(hp_hash_bytes(text, strlen(text)).hex));
    free(text);
    text = json_dumps(root, 0);
    write_file(path, text, (long)strlen(text));
    free(text);
    json_decref(root);
}

/* Keeping one: a run resumed from before damaged checkpoints replaces its starting point, never its last
 * checkpoint. */
static void damaged_later_ones_do_not_count_as_kept(void **state) {
    (void)state;
    char dir[64];
    hp_error err;
    for (int broken = 1; broken <= 2; broken++) {
        fresh(dir);
        for (int i = 0; i < broken; i++) {
            char manifest[256];
            assert_int_equal(save(&hp_disk, dir, 9 + i, &err), HP_OK);
            hp_arena *a = hp_arena_new();
            snprintf(manifest, sizeof manifest, "%s/%s", hp_checkpoint_path(a, dir, 9 + i, false),
                     HP_MANIFEST);
            hp_arena_free(a);
            write_file(manifest, "{", 1);
        }
        for (int64_t step = 6; step <= 8; step++) {
            assert_int_equal(save(&hp_disk, dir, step, &err), HP_OK);
            assert_int_equal(load(dir, &err), step);
        }
        drop(dir);
    }
}

static void strange_manifests_are_refused(void **state) {
    (void)state;
    char dir[64], path[256], data[8192];
    hp_error err;
    fresh(dir);
    assert_int_equal(save(&hp_disk, dir, 1, &err), HP_OK);
    const long n = read_file(dir, FILES[0], path, data, sizeof data);
    const struct {
        const char *key, *value;
    } STRANGE[] = {{"ranks", "1000000000000"},
                   {"ranks", "0"},
                   {"ranks", "-1"},
                   {"ranks", "3"},
                   {"ranks", "\"2\""},
                   {"step", "-1"},
                   {"step", "9007199254740993"},
                   {"step", "2"},
                   {"version", "3"},
                   {"dtype", "\"F16\""},
                   {"dtype", "\"../../etc\""},
                   {"loss", "1"},
                   {"loss", "\"x\""},
                   {"files", "[]"},
                   {"files", "[1,2]"},
                   {"files", "[{\"bytes\":1152921504606846976,\"chunks\":[\"00\"]},{}]"},
                   {"files", "[{\"bytes\":-5,\"chunks\":[]},{\"bytes\":-5,\"chunks\":[]}]"}};
    rewrite(path, data, n, "data", json_string("other"));
    assert_int_equal(load(dir, &err), 1); /* the way of rewriting is right */
    for (size_t i = 0; i < sizeof STRANGE / sizeof *STRANGE; i++) {
        rewrite(path, data, n, STRANGE[i].key, json_loads(STRANGE[i].value, JSON_DECODE_ANY, NULL));
        if (load(dir, &err) != 0) fail_msg("%s: %s loads", STRANGE[i].key, STRANGE[i].value);
    }
    drop(dir);
}

static void values_survive_the_text(void **state) {
    (void)state;
    char dir[64], path[256];
    hp_error err;
    hp_arena *a = hp_arena_new();
    hp_chunks file[RANKS] = {{.bytes = 3, .n = 1, .hash = (uint64_t[]){UINT64_MAX}},
                             {.bytes = HP_DISK_CHUNK + 1, .n = 2, .hash = (uint64_t[]){0, 7}}};
    hp_manifest m = manifest_of(5, file), back;
    m.lr = 0x1.fffffffffffffp-3, m.loss_scale = 0x1p-14, m.seed = "18446744073709551615";
    fresh(dir);
    snprintf(path, sizeof path, "%s/m", dir);
    char *text = hp_manifest_text(&m);
    write_file(path, text, (long)strlen(text));
    free(text);
    assert_int_equal(hp_manifest_read(a, path, &back, &err), HP_OK);
    assert_int_equal(hp_manifest_same(&m, &back, &err), HP_OK);
    assert_string_equal(hp_manifest_notes(a, &m, &back), "");
    assert_true(back.lr == m.lr && back.loss_scale == m.loss_scale && back.step == 5);
    assert_true(back.file[0].hash[0] == UINT64_MAX && back.file[1].n == 2 && back.file[1].hash[1] == 7);
    back.batch++;
    assert_int_equal(hp_manifest_same(&m, &back, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "batch"));
    drop(dir);
    hp_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_save_that_ends_anywhere_leaves_one_that_loads),
        cmocka_unit_test(every_flipped_byte_is_seen),
        cmocka_unit_test(every_length_but_the_right_one_is_refused),
        cmocka_unit_test(damaged_later_ones_do_not_count_as_kept),
        cmocka_unit_test(strange_manifests_are_refused),
        cmocka_unit_test(values_survive_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
