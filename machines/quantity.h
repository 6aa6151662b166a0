/* quantity.h - numbers with units in descriptions of machines: 300GB/s, 200Gb/s, 19.5TFLOP/s, 80GiB, 5us. */
#ifndef HP_QUANTITY_H
#define HP_QUANTITY_H

#include <stdbool.h>

typedef enum hp_quantity {
    HP_QUANTITY_COUNT,
    HP_QUANTITY_BYTES,
    HP_QUANTITY_RATE, /* bytes per second */
    HP_QUANTITY_OPS,  /* operations per second */
    HP_QUANTITY_SECONDS,
    HP_QUANTITIES
} hp_quantity;

/* Only 0, counts and bytes may omit the unit. */
bool hp_quantity_read(const char *text, hp_quantity kind, double *value);
/* The shortest text in the usual unit that reads back as the same number; otherwise 17 digits in the base
 * unit. */
const char *hp_quantity_text(double value, hp_quantity kind, char out[48]);
/* For messages: "a rate such as 300GB/s or 200Gb/s". */
const char *hp_quantity_example(hp_quantity kind);

#endif
