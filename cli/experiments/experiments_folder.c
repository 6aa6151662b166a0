/* experiments_folder.c - finds the files of published figures and selects the requested ones. */
#include "cli/experiments/experiments.h"

#include "base/input.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

static const char ending[] = ".txt";

hp_status experiment_folder(hp_arena *arena, const char *folder, const char **found, hp_error *err) {
    static const char *const beside[] = {"../share/hplan/experiments", "../experiments"};
    char here[4096];
    *found = folder;
    if (folder) return HP_OK;
    cli_executor_path(here, sizeof here);
    char *slash = strrchr(here, '/');
    if (slash) *slash = 0;
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        *found = hp_arena_printf(arena, "%s/%s", here, beside[i]);
        if (access(*found, R_OK) == 0) return HP_OK;
    }
    *found = "experiments";
    if (access(*found, R_OK) == 0) return HP_OK;
    return hp_fail(err, HP_EDATA, "no folder of experiments: not %s/%s, nor ./experiments; give --folder",
                   here, beside[0]);
}

static int is_text(const struct dirent *e) {
    const size_t n = strlen(e->d_name), m = strlen(ending);
    return n > m && e->d_name[0] != '.' && strcmp(e->d_name + n - m, ending) == 0;
}

static bool asked_for(const char *name, const char *const *names, int n) {
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return true;
    return n == 0;
}

static hp_status read_file(hp_arena *arena, const char *folder, const char *file, const char *name,
                           experiment_book *book, hp_error *err) {
    char *text = NULL;
    experiment_file f = {.name = name, .path = hp_arena_printf(arena, "%s/%s", folder, file)};
    HP_TRY(hp_text_file(arena, f.path, "experiment", "", &text, err));
    HP_TRY(experiment_parse(arena, text, &f, err));
    if (f.cited) HP_TRY(experiment_cited(arena, &f.cited, 1, &f.in_table, err));
    HP_ROOM(arena, book->file, book->n, book->capacity);
    book->file[book->n++] = f;
    return HP_OK;
}

static hp_status check_names(const char *folder, const char *const *name, int n_name,
                             const experiment_book *book, hp_error *err) {
    for (int i = 0; i < n_name; i++) {
        int k = 0;
        while (k < book->n && strcmp(book->file[k].name, name[i]) != 0) k++;
        if (k == book->n)
            return hp_fail(err, HP_EUSAGE, "no experiment '%.40s' in %s; hplan experiments --list names them",
                           name[i], folder);
    }
    return book->n ? HP_OK : hp_fail(err, HP_EDATA, "%s holds no experiments (files *%s)", folder, ending);
}

hp_status experiment_read(hp_arena *arena, const char *folder, const char *const *name, int n_name,
                          experiment_book *book, hp_error *err) {
    struct dirent **entry;
    hp_status status = HP_OK;
    const int n = scandir(folder, &entry, is_text, alphasort);
    if (n < 0) return hp_fail(err, HP_EDATA, "cannot read the folder %s; give --folder", folder);
    for (int i = 0; i < n; i++) {
        const int stem = (int)(strlen(entry[i]->d_name) - strlen(ending));
        const char *file = hp_arena_printf(arena, "%.*s", stem, entry[i]->d_name);
        if (status == HP_OK && asked_for(file, name, n_name))
            status = read_file(arena, folder, entry[i]->d_name, file, book, err);
        free(entry[i]);
    }
    free(entry);
    return status == HP_OK ? check_names(folder, name, n_name, book, err) : status;
}
