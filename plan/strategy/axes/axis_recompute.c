/* axis_recompute.c - `recompute`: what is not kept for the backward pass and computed again. */
#include "plan/strategy/axis_kinds.h"

static const char *const words[] = {[HP_RECOMPUTE_NONE] = "none",
                                    [HP_RECOMPUTE_BOUNDARY] = "boundary",
                                    [HP_RECOMPUTE_FULL] = "full",
                                    [HP_RECOMPUTE_EXCEPT_LAST] = "except-last",
                                    NULL};

const hp_axis hp_axis_recompute = {.name = "recompute",
                                   .example = "recompute=full",
                                   .usual = "none",
                                   .means =
                                       "what the backward pass recomputes: boundary keeps unit inputs, full "
                                       "stage inputs, except-last is full but for the last micro-batch",
                                   HP_WORD(recompute, words)};
