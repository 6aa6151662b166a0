/* fewer.h - strategies of the same kind on fewer devices. The batch stays, and so do the groups of samples
 * over which batch norms average: one replica does in consecutive micro-batches what several did side by
 * side. Training is the same but for rounding. */
#ifndef HP_FEWER_H
#define HP_FEWER_H

#include "plan/strategy/strategy.h"

/* Writes at most `room` of them, on at most n_devices, the nearest first: those that keep the most kinds
 * of parallelism within a replica (stages, tiles, slices, channels, branches, shared layers and tokens,
 * mirrored passes), among them those with the largest replica, and of each as many replicas as fit, then
 * fewer. Replicas that share a device become replicas of their own. Returns how many; none need be legal. */
int hp_strategy_fewer(const hp_strategy *s, int n_devices, hp_strategy *out, int room);

enum { HP_UNLIKE_TEXT = 160 };
/* Do both strategies train alike, on the same batch, but for rounding? Else `why` says what differs. `bn`:
 * the network has batch norms. */
bool hp_trains_alike(const hp_strategy *from, const hp_strategy *to, bool bn, char why[HP_UNLIKE_TEXT]);

#endif
