/* workspace.h - a run's scratch folder next to its trace: the working copy of the plan, the rings, then
 * run.db.
 *
 * Nothing outside the folder changes before workspace_keep and workspace_commit, which put the finished database
 * under the trace's name, so an earlier run.db survives every failure. */
#ifndef HP_WORKSPACE_H
#define HP_WORKSPACE_H

#include "cli/launch/launch.h"
#include "plan/store/store.h"

typedef struct workspace {
    char final[4096]; /* the trace's name */
    char dir[4128];   /* scratch folder */
    char db[4160];    /* working database in it: the plan, its prediction, then the trace */
    char hosts[4160]; /* node of each rank, where they do not fill node after node */
    char kept[4128];  /* workspace_keep: where the file of that name is now; "" there was none */
} workspace;

/* Creates the folder. Errors: HP_ECREATE (also where the name is a folder's or a device's), HP_EIO. */
hp_status workspace_open(const char *final, workspace *w, hp_error *err);
/* Removes the folder and its contents. Safe on a zeroed workspace. */
void workspace_close(workspace *w);

/* The folder of a run that is over: workspace_close removes it. `final`: the trace's name. */
void workspace_adopt(const char *dir, const char *final, workspace *w);

/* Copies an opened plan to the working database, without any runs it contains. Errors: HP_EIO (disk full). */
hp_status workspace_copy(workspace *w, hp_db *plan, hp_error *err);

/* How the plan in the working database is launched: sets l->plan, l->scratch, ranks and nodes. Errors: HP_EPLAN (places
 * without names of nodes), HP_EIO. */
hp_status workspace_launch(workspace *w, const hp_plan *plan, cli_launch *l, hp_error *err);

/* Runs the plan in the working database and adds its trace, also after a failure. *recorded: the trace contains spans. Errors: cli_launch_run's; HP_EIO. */
hp_status workspace_run(workspace *w, const hp_plan *plan, cli_launch *l, bool *recorded, hp_error *err);

/* Adds the trace of a run that was killed with hplan, as far as its rings go; `status`: how it ended. *recorded: the trace contains spans.
 * Errors: HP_EIO, HP_EDATA. */
hp_status workspace_recover(workspace *w, const hp_plan *plan, hp_status status, bool *recorded,
                            hp_error *err);
/* Where there is a file of the final name, the final name becomes run-1.db, or the next number that is free. */
void workspace_free_name(workspace *w);

/* Keeps a file that has the final name already: run.db also becomes run-1.db, or the next number that is free.
 * Errors: HP_EIO. */
hp_status workspace_keep(workspace *w, hp_error *err);

/* Renames the database to its final name. Errors: HP_EIO. */
hp_status workspace_commit(workspace *w, hp_error *err);

#endif
