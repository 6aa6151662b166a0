/* schema.c - the tables of plan.db and run.db, one for both: a run.db is a plan.db with runs of kind 'exec'
 * added. */
#include "plan/base/db.h"

/* No weights, commands, environment or library names in here. Times are nanoseconds, sizes bytes.
 * task.op is "fwd.conv": opcode, dot, operator of its layer if it has one. counter.value is NULL for
 * not-a-number. */
const char hp_db_schema[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;\n"
    "CREATE TABLE candidate(rank INTEGER PRIMARY KEY, strategy TEXT NOT NULL, gpus INTEGER NOT NULL, step_s "
    "REAL NOT NULL,"
    " step_low_s REAL NOT NULL, step_high_s REAL NOT NULL, images_per_s REAL NOT NULL, memory_bytes INTEGER "
    "NOT NULL,"
    " bubble REAL NOT NULL, exposed_comm REAL NOT NULL, comm_bytes INTEGER NOT NULL, measured_share REAL NOT "
    "NULL,"
    " tie INTEGER NOT NULL, note TEXT NOT NULL) STRICT;\n"
    "CREATE TABLE rejected(code TEXT NOT NULL, count INTEGER NOT NULL, example TEXT NOT NULL, lim TEXT NOT "
    "NULL,"
    " fix TEXT NOT NULL) STRICT;\n"
    "CREATE TABLE program(kind TEXT NOT NULL, role INTEGER NOT NULL, part TEXT NOT NULL, data BLOB NOT NULL,"
    " PRIMARY KEY(kind, role, part)) STRICT, WITHOUT ROWID;\n"
    "CREATE TABLE run(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, plan_hash TEXT NOT NULL, strategy TEXT NOT "
    "NULL,"
    " machine TEXT NOT NULL, device TEXT NOT NULL, version TEXT NOT NULL, seed INTEGER NOT NULL, ranks "
    "INTEGER NOT NULL,"
    " started TEXT NOT NULL, status INTEGER NOT NULL) STRICT;\n"
    "CREATE TABLE task(run INTEGER NOT NULL, role INTEGER NOT NULL, task INTEGER NOT NULL, op TEXT NOT NULL,"
    " phase TEXT NOT NULL, label TEXT NOT NULL, layer INTEGER NOT NULL, micro INTEGER NOT NULL, bytes "
    "INTEGER NOT NULL,"
    " PRIMARY KEY(run, role, task)) STRICT, WITHOUT ROWID;\n"
    "CREATE TABLE span(run INTEGER NOT NULL, rank INTEGER NOT NULL, role INTEGER NOT NULL, task INTEGER NOT "
    "NULL,"
    " iter INTEGER NOT NULL, t0_ns INTEGER NOT NULL, t1_ns INTEGER NOT NULL) STRICT;\n"
    "CREATE TABLE counter(run INTEGER NOT NULL, rank INTEGER NOT NULL, iter INTEGER NOT NULL, name TEXT NOT "
    "NULL,"
    " t_ns INTEGER NOT NULL, value REAL) STRICT;\n";
