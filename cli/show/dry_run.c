/* dry_run.c - the launch of a run, word by word. */
#include "cli/show/dry_run.h"

#include "cli/cli.h"
#include "cli/launch/launch_command.h"
#include "base/text.h"
#include "base/units.h"

static void print_text(hp_arena *arena, const hp_plan *plan, const cli_launch *l, const launch_command *c,
                       const char *trace) {
    char threads[16], bytes[32];
    launch_variable list[LAUNCH_VARIABLES];
    int64_t most = 0;
    const int n = launch_variables(l, threads, list);
    for (int r = 0; r < plan->program->n_role; r++)
        if (plan->program->role[r].arena_bytes > most) most = plan->program->role[r].arena_bytes;
    printf("# %d rank%s, %s planned on the fullest; the trace goes into %s\n", l->ranks,
           l->ranks == 1 ? "" : "s", hp_format_bytes((double)most, bytes), hp_shell_word(arena, trace));
    printf("# %s holds a copy of the plan and the ranks' rings while it runs; its name is new each time\n",
           hp_shell_word(arena, l->scratch));
    for (int i = 0; i < n; i++) printf("%s=%s ", list[i].name, hp_shell_word(arena, list[i].value));
    for (int i = 0; i < c->n; i++) printf("%s%s", i ? " " : "", hp_shell_word(arena, c->word[i]));
    printf("\n");
}

static hp_status print_json(const cli_launch *l, const launch_command *c, hp_error *err) {
    char threads[16];
    launch_variable list[LAUNCH_VARIABLES];
    json_t *words = json_array(), *variables = json_object();
    const int n = launch_variables(l, threads, list);
    for (int i = 0; i < n; i++) json_object_set_new(variables, list[i].name, json_string(list[i].value));
    for (int i = 0; i < c->n; i++) json_array_append_new(words, json_string(c->word[i]));
    return cli_print_json(json_pack("{s:i, s:b, s:i, s:o, s:o}", "schema", 1, "dry_run", true, "ranks",
                                    l->ranks, "environment", variables, "command", words),
                          err);
}

hp_status dry_run_show(const hp_plan *plan, const cli_launch *l, const char *trace, bool json,
                       hp_error *err) {
    launch_command c;
    hp_arena *arena = hp_arena_new();
    hp_status s = launch_command_make(l, &c, err);
    if (s == HP_OK && json) s = print_json(l, &c, err);
    if (s == HP_OK && !json) print_text(arena, plan, l, &c, trace);
    launch_command_free(&c);
    hp_arena_free(arena);
    return s == HP_OK ? cli_finish_stdout(err) : s;
}
