/* machine_text.h - internals of machines as text: one table of fields for reading, writing and messages. */
#ifndef HP_MACHINE_TEXT_H
#define HP_MACHINE_TEXT_H

#include "machines/machine.h"
#include "machines/quantity.h"

typedef enum machine_type {
    TYPE_NAME, /* printed in cost tables between spaces */
    TYPE_TEXT,
    TYPE_YES,     /* yes or no */
    TYPE_NIC_USE, /* one of hp_nic_use_names */
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
    M_NIC_USE,
    M_TAPER,
    M_LEAF,
    M_MPI,
    M_SHARP,
    M_ANY_SIZE,
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
    M_GUESSED,
    MACHINE_FIELDS
} machine_field_id;

typedef struct machine_field {
    const char *clause, *key; /* "nic", "latency": nic=..., latency=T; key "": the clause's own value */
    machine_type type;
    hp_quantity unit; /* unit of a number */
    size_t offset, size;
    double low, high; /* range of a number, or of a string's length */
    const char *form; /* syntax of the clause, for messages */
} machine_field;

extern const machine_field machine_fields[MACHINE_FIELDS];

/* Where a field's value comes from. KEPT: a change leaves it as it was. */
typedef enum machine_found { ABSENT, GIVEN, KEPT, WRONG } machine_found;

/* Devices named in a text, and their places. */
enum { MACHINE_NAME = 128 };
typedef struct machine_shape {
    int n_name, n_kind, n_nodes; /* n_nodes: numbers of nodes */
    char name[1 + HP_MORE_CLASSES][MACHINE_NAME];
    hp_node_kind kind[HP_NODE_KINDS];
    int32_t nodes[HP_NODE_KINDS];
} machine_shape;

typedef struct machine_reading {
    hp_machine m;
    machine_found field[MACHINE_FIELDS];
    machine_shape shape;                /* as this text has it */
    machine_shape whole;                /* as known from reading it before; zero: not known */
    int pick;                           /* the class that is read now, of `whole` */
    bool slow;                          /* the text says who is slow */
    char device[MACHINE_NAME];          /* as the node's clause calls it */
    char described[MACHINE_NAME];       /* as the device's clause does */
    char of_device[HP_MACHINE_ASSUMED]; /* what was assumed of it */
    char clause[64];                    /* at hand, for messages */
    char problems[760];                 /* joined by "; " */
} machine_reading;

/* Reports a problem with the current clause. */
void machine_complain(machine_reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reads a value of a field. */
void machine_put(machine_reading *r, machine_field_id i, const char *value);
void machine_read_clauses(machine_reading *r, const char *text);
/* Splits "4 x a100": leaves the number in text and sets *rest to what follows the x; false if it has another
 * form. */
bool machine_counted(char *text, char **rest);

/* Reads devices: "2 x a + 2 x b | 4 x c" per node, "6 + 2" nodes, "3:70%" for a slow place. */
bool machine_read_shape(machine_reading *r, char *text);
bool machine_read_nodes(machine_reading *r, char *text);
void machine_read_slow(machine_reading *r, const char *text);
/* Is the device named `name` of another class than the one being read? */
bool machine_of_another(const machine_reading *r, const char *name);
/* Reads a text once for each class in it; `reads` starts from *start and completes the machine. */
typedef void machine_read(machine_reading *r, const char *text);
void machine_read_mix(const machine_reading *start, const char *text, machine_read *reads,
                      machine_reading *out);
/* Default assignment of devices to NICs. */
hp_nic_use machine_usual_nic_use(bool cpu);
/* "8", or "6 + 2" if nodes differ. */
const char *machine_nodes_text(hp_arena *arena, const hp_machine *m);
/* Fills missing fields, and reports those that cannot be filled. */
void machine_complete(machine_reading *r);
bool machine_name_ok(const char *s);

#endif
