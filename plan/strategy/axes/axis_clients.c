/* axis_clients.c - `clients`: ranks that share a device. What rules it out lives with `share`, `comm` and
 * `place`. */
#include "plan/strategy/axis_kinds.h"

const hp_axis hp_axis_clients = {.name = "clients",
                                 .example = "clients=4",
                                 .usual = "1",
                                 .means = "processes per device",
                                 HP_DEGREE(clients),
                                 .family = HP_FAMILY_CLIENTS,
                                 .marks = 5};
