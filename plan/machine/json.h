/* json.h - inside of machines as JSON text: one table of fields serves reading, writing and messages. */
#ifndef HP_MACHINE_JSON_H
#define HP_MACHINE_JSON_H

#include "plan/machine/machine.h"

#include <jansson.h>

typedef enum machine_field_type {
    FIELD_NAME, /* stands in cost tables between spaces */
    FIELD_TEXT,
    FIELD_BOOL,
    FIELD_INT32,
    FIELD_INT64,
    FIELD_DOUBLE
} machine_field_type;

typedef struct machine_field {
    const char *group; /* object the field is in; "" = the machine itself */
    const char *key;
    machine_field_type type;
    size_t offset, size;
    double low, high; /* of a number; of a string's length */
} machine_field;

enum { MACHINE_FIELDS = 24 };
extern const machine_field machine_fields[MACHINE_FIELDS];

#endif
