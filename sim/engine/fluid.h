/* fluid.h - activities over time: each has remaining work and a rate that changes as others start and end.
 *
 * While no resource is overloaded, every rate is 1, and a start or an end changes no other activity (the fast
 * path). Otherwise the rates of the connected component around the change are solved again (share.h), once
 * for all changes of an instant. */
#ifndef HP_FLUID_H
#define HP_FLUID_H

#include "sim/engine/events.h"
#include "sim/engine/share.h"

typedef struct hp_fluid hp_fluid;

/* capacity: n_resource entries > 0. Ends of activities are pushed to `events`. */
hp_fluid *hp_fluid_new(hp_arena *arena, int n_resource, const double *capacity, hp_events *events);

/* Makes a resource's capacity depend on the number of its users: has[n] for n >= 1. Call it before anything
 * starts. */
void hp_fluid_capacities(hp_fluid *f, int resource, const double *has);

/* Starts an activity that takes `latency_ns`, in which it uses nothing, and then `work_ns` when alone;
 * hp_fluid_end returns `owner`. `use` must outlive it. */
void hp_fluid_start(hp_fluid *f, int64_t now_ns, int64_t latency_ns, int64_t work_ns, int n_use,
                    const hp_share_use *use, int64_t owner);

/* Solves the rates after all starts and ends so far. Call it before time moves on from `now_ns`. */
void hp_fluid_settle(hp_fluid *f, int64_t now_ns);

/* Handles an event. Returns true if it is the end of an activity (*owner), false if a change of rate made it
 * stale or a latency ended. */
bool hp_fluid_end(hp_fluid *f, const hp_event *e, int64_t *owner);

/* A running activity, for comparing two instants: owner, remaining work and rate at its last change, time
 * since then, and the work after a latency. Valid until the next start. */
typedef struct hp_activity_state {
    int64_t owner, ago_ns, then_ns;
    double left_ns, rate;
} hp_activity_state;
/* Lists running activities by owner; returns their number. Rates must be settled. */
int hp_fluid_state(hp_fluid *f, int64_t now_ns, hp_activity_state **state);
/* Delays all running activities; hp_events_delay delays their ends. */
void hp_fluid_delay(hp_fluid *f, int64_t ns);

#endif
