/* fluid.h - activities over time: each has work left and a rate that changes as others come and go.
 *
 * While no resource is asked for more than it has, every rate is 1 and a start or an end changes no other activity
 * (the fast path). Otherwise the rates of the connected component around the change are solved again
 * (share.h), once for all changes of an instant. */
#ifndef HP_FLUID_H
#define HP_FLUID_H

#include "sim/events.h"
#include "sim/share.h"

typedef struct hp_fluid hp_fluid;

/* capacity: n_resource entries > 0. Ends of activities are pushed to `events`. */
hp_fluid *hp_fluid_new(hp_arena *arena, int n_resource, const double *capacity, hp_events *events);

/* What a resource has depends on how many use it: has[n] of n; n >= 1. Before anything starts. */
void hp_fluid_capacities(hp_fluid *f, int resource, const double *has);

/* Starts an activity that takes `latency_ns`, in which it uses nothing, and then `work_ns` alone; `owner` comes back from
 * hp_fluid_end. `use` must outlive it.
 */
void hp_fluid_start(hp_fluid *f, int64_t now_ns, int64_t latency_ns, int64_t work_ns, int n_use,
                    const hp_share_use *use, int64_t owner);

/* Gives everybody the rates that follow from the starts and ends so far: before time moves on from `now_ns`.
 */
void hp_fluid_settle(hp_fluid *f, int64_t now_ns);

/* Takes an event; true when it is the end of an activity (*owner), false when a change of rate made it stale, or a
 * latency is over.
 */
bool hp_fluid_end(hp_fluid *f, const hp_event *e, int64_t *owner);

/* What is under way, for comparing two instants: owner, work left and rate when it last changed, how long ago that
 * was, and the work after a latency. Valid until the next start. */
typedef struct hp_activity_state {
    int64_t owner, ago_ns, then_ns;
    double left_ns, rate;
} hp_activity_state;
/* In order of owners; returns how many. Rates are settled. */
int hp_fluid_state(hp_fluid *f, int64_t now_ns, hp_activity_state **state);
/* All that is under way goes on so much later; hp_events_delay puts off its ends. */
void hp_fluid_delay(hp_fluid *f, int64_t ns);

#endif
