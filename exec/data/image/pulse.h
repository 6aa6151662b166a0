/* pulse.h - signals that a long read makes progress, so that those who wait for it stay patient
 * (exec/interp/watchdog.h). */
#ifndef HP_PULSE_H
#define HP_PULSE_H

typedef struct hp_pulse {
    void (*beat)(void *self); /* NULL: nobody listens */
    void *self;
} hp_pulse;

static inline void hp_pulse_beat(const hp_pulse *p) {
    if (p->beat) p->beat(p->self);
}

#endif
