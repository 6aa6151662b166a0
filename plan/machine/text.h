/* text.h - inside of machines as text: one table of fields serves reading, writing and messages. */
#ifndef HP_MACHINE_TEXT_H
#define HP_MACHINE_TEXT_H

#include "plan/machine/machine.h"
#include "plan/machine/quantity.h"

typedef enum machine_type {
    TYPE_NAME, /* stands in cost tables between spaces */
    TYPE_TEXT,
    TYPE_YES, /* yes or no */
    TYPE_INT32,
    TYPE_INT64,
    TYPE_DOUBLE
} machine_type;

typedef enum machine_field_id {
    M_NAME,
    M_SOURCE,
    M_NODES,
    M_DEVICES,
    M_DEVICE,
    M_LINK,
    M_LINK_RATE,
    M_LINK_LATENCY,
    M_CORES,
    M_NICS,
    M_NIC,
    M_NIC_RATE,
    M_NIC_LATENCY,
    M_TAPER,
    M_SHARE,
    M_CPU,
    M_MEMORY,
    M_FP32,
    M_TF32,
    M_BF16,
    M_FP16,
    M_INT8,
    M_BANDWIDTH,
    M_LAUNCH,
    M_LIKE,
    MACHINE_FIELDS
} machine_field_id;

typedef struct machine_field {
    const char *clause, *key; /* "nic", "latency": nic=..., latency=T; "": the clause's own */
    machine_type type;
    hp_quantity unit; /* of a number */
    size_t offset, size;
    double low, high; /* of a number; of a string's length */
    const char *form; /* how the clause is written, for messages */
} machine_field;

extern const machine_field machine_fields[MACHINE_FIELDS];

/* What a text said of a field; KEPT: a change leaves it as it was. */
typedef enum machine_found { ABSENT, GIVEN, KEPT, WRONG } machine_found;

typedef struct machine_reading {
    hp_machine m;
    machine_found field[MACHINE_FIELDS];
    char device[128];    /* as the node's clause calls it */
    char described[128]; /* as the device's clause does */
    char clause[64];     /* at hand, for messages */
    char problems[760];  /* joined by "; " */
} machine_reading;

/* Adds a problem, with the clause at hand. */
void machine_complain(machine_reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reads a value of a field. */
void machine_put(machine_reading *r, machine_field_id i, const char *value);
void machine_read_clauses(machine_reading *r, const char *text);
/* Fills what was not said, and complains about what is missing. */
void machine_complete(machine_reading *r);
bool machine_name_ok(const char *s);

#endif
