/* cmd_experiments.c - shows published figures beside hplan's predictions for their set-ups, misses as well as
 * hits. */
#include "cli/experiments/experiments.h"
#include "cli/show/frame.h"

typedef struct options {
    const char *folder, *leave_out;
    bool list, json;
} options;

static void count(experiment_report *r) {
    for (int k = 0; k < r->book->n; k++) {
        const experiment_file *f = &r->book->file[k];
        for (int i = 0; i < f->n; i++) {
            const experiment_result x = experiment_judge(f, i, r->run[k]);
            const experiment_result y = experiment_judge(f, i, r->roofline[k]);
            experiment_add(&r->tally, f, &f->row[i], &x);
            experiment_add(&r->tally_roofline, f, &f->row[i], &y);
        }
    }
}

/* Counts table rows that may have been fitted to these figures; a row that several files cite counts once. */
static hp_status count_cited(hp_arena *arena, experiment_report *r, hp_error *err) {
    const char **cited = HP_NEW(arena, const char *, r->book->n);
    int n = 0;
    for (int k = 0; k < r->book->n; k++)
        if (r->book->file[k].cited) cited[n++] = r->book->file[k].cited;
    return experiment_cited(arena, cited, n, &r->cited, err);
}

static hp_status show(const experiment_report *r, const options *o, hp_error *err) {
    const experiment_count *exact = &r->tally.of[EXPERIMENT_EXACT];
    if (o->json)
        HP_TRY(cli_print_json(experiment_json(r), err));
    else
        experiment_print(r);
    HP_TRY(cli_finish_stdout(err));
    return exact->hit == exact->known ? HP_OK : HP_DIFF;
}

static hp_status compare(frame *f, const experiment_book *book, hp_error *err) {
    const options *o = f->options;
    const experiment_costs own = {.roofline = false}, peak = {.roofline = true};
    experiment_report r = {.book = book, .left_out_by = o->leave_out};
    const experiment_dimension *by = NULL;
    if (o->leave_out) HP_TRY(experiment_find_dimension(o->leave_out, &by, err));
    HP_TRY(count_cited(f->arena, &r, err));
    r.run = experiment_evaluate_all(f->arena, book, &own, NULL);
    r.roofline = experiment_evaluate_all(f->arena, book, &peak, NULL);
    count(&r);
    r.of_time = experiment_group_of(book->n, book->file, r.run);
    r.n_group = experiment_groups(f->arena, book, r.run, &r.group);
    r.n_profile = experiment_profiles(f->arena, book, r.run, &r.profile);
    r.n_ranking = experiment_rank(f->arena, book, r.run, r.roofline, &r.ranking);
    if (by) r.n_left_out = experiment_leave_out(f->arena, book, by, r.run, r.roofline, &r.left_out);
    return show(&r, o, err);
}

static hp_status run(frame *f, hp_error *err) {
    const options *o = f->options;
    const char *folder = NULL;
    experiment_book book = {0};
    HP_TRY(experiment_folder(f->arena, o->folder, &folder, err));
    HP_TRY(experiment_read(f->arena, folder, f->word, f->n_word, &book, err));
    if (!o->list) return compare(f, &book, err);
    if (o->json) return cli_print_json(experiment_json_list(&book), err);
    experiment_print_list(&book);
    return cli_finish_stdout(err);
}

int cmd_experiments(int argc, char **argv) {
    static const frame_option list[] = {
        {"list", 0, NULL, offsetof(options, list), 0, "name them, predict nothing"},
        {"leave-out", 0, "net|machine|image|group", offsetof(options, leave_out), 0,
         "errors without what cost tables took from figures of each; a group is a file"},
        {"folder", 0, "DIR", offsetof(options, folder), 0, "where the files are (those of the installation)"},
        {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "[NAME...]",
        .doc = "Predicts what was published of other systems and shows both, with the error, and that of a "
               "plain "
               "roofline. Exit status 1: what must hold exactly does not.\vFor example: hplan experiments "
               "table-2.1",
        .max_word = 17,
        .too_many = "at most 17 names: '%s' is one too many; without names all are shown",
        .run = run};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
