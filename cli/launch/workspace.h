/* workspace.h - a run's scratch directory next to its trace: the working copy of the plan, the rings, then
 * run.db.
 *
 * Nothing outside it changes before workspace_keep and workspace_commit, which give the finished database the
 * trace's name. An earlier run.db thus survives every failure. */
#ifndef HP_WORKSPACE_H
#define HP_WORKSPACE_H

#include "cli/launch/launch.h"
#include "plan/store/store.h"

typedef struct workspace {
    char final[4096]; /* the trace's name */
    char dir[4128];   /* scratch folder */
    char db[4160];    /* working database: the plan, its prediction, then the trace */
    char hosts[4160]; /* node of each rank, if they do not fill one node after another */
    char kept[4128];  /* workspace_keep: new path of the file that had the final name; "": there was none */
} workspace;

/* Creates the directory. Errors: HP_ECREATE (also if the name belongs to a directory or a device), HP_EIO. */
hp_status workspace_open(const char *final, workspace *w, hp_error *err);
/* Removes the directory and its contents. Safe on a zeroed workspace. */
void workspace_close(workspace *w);

/* Adopts the directory of a finished run; workspace_close removes it. `final`: the trace's name. */
void workspace_adopt(const char *dir, const char *final, workspace *w);

/* Copies an opened plan to the working database, without its runs. Errors: HP_EIO (disk full). */
hp_status workspace_copy(workspace *w, hp_db *plan, hp_error *err);

/* Sets how the plan in the working database is launched: l->plan, l->scratch, ranks and nodes. Errors:
 * HP_EPLAN (places without names of nodes), HP_EIO. */
hp_status workspace_launch(workspace *w, const hp_plan *plan, cli_launch *l, hp_error *err);

/* Runs the plan in the working database and adds its trace, also after a failure. *recorded: the trace
 * contains spans. Errors: cli_launch_run's; HP_EIO. */
hp_status workspace_run(workspace *w, const hp_plan *plan, cli_launch *l, bool *recorded, hp_error *err);

/* Adds the trace of a run that was killed together with hplan, as far as its rings contain it; `status`: how
 * it ended. *recorded: the trace contains spans. Errors: HP_EIO, HP_EDATA. */
hp_status workspace_recover(workspace *w, const hp_plan *plan, hp_status status, bool *recorded,
                            hp_error *err);
/* If the final name is taken, changes it to run-1.db, or the next free number. */
void workspace_free_name(workspace *w);

/* Preserves an existing file with the final name: run.db is also linked as run-1.db, or the next free number.
 * Errors: HP_EIO. */
hp_status workspace_keep(workspace *w, hp_error *err);

/* Renames the database to its final name. Errors: HP_EIO. */
hp_status workspace_commit(workspace *w, hp_error *err);

#endif
