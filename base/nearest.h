/* nearest.h - the name that a mistyped one probably means. */
#ifndef HP_NEAREST_H
#define HP_NEAREST_H

/* Of `n` names the one with the fewest edits (Levenshtein 1966) from `word`, if they are at most three and fewer than
 * its letters; else NULL. Letters and digits alone count, in any case. Words of more than 64 letters are near nothing. */
const char *hp_nearest(const char *word, const char *const *name, int n);

#endif
