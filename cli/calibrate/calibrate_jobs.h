/* calibrate_jobs.h - the runs of `hplan calibrate`: real networks for compute tasks, programs of messages for
 * links. */
#ifndef HP_CALIBRATE_JOBS_H
#define HP_CALIBRATE_JOBS_H

#include "cli/calibrate/bench_program.h"
#include "networks/graph/precision.h"
#include "plan/store/store.h"

enum { CALIBRATE_JOBS = 1024 }; /* 16 nodes of 16 devices need 686 jobs for messages and collectives */

typedef enum calibrate_kind { CALIBRATE_NET, CALIBRATE_COLLECTIVE, CALIBRATE_PING_PONG } calibrate_kind;

typedef struct calibrate_job {
    calibrate_kind kind;
    char net[64];
    int32_t image_h, image_w;
    hp_mode mode;
    int32_t prec, strips; /* inference: hp_prec */
    int32_t dp;           /* number of data-parallel ranks, or of ranks in a collective */
    int32_t clients;      /* ranks that share a GPU; 0: one */
    int32_t per_node;     /* messages and collectives: ranks per node; 0: all on one */
    hp_backend backend;   /* messages and collectives: who carries them */
    hp_collective what;
    hp_algorithm algorithm; /* LIBRARY: by the rule */
    int32_t rows, cols;     /* tiles; 1 x 1 except in runs that measure copies and statistics */
    int64_t micro_batch;    /* images per rank */
    /* strategy of a network run with any strategy, which replaces the fields above; NULL */
    const hp_strategy *strategy;
    int64_t batch;            /* batch for that strategy */
    int32_t optimizer, clips; /* see hp_plan */
    int64_t steps;
    char text[96]; /* for people */
} calibrate_job;

typedef struct calibrate_jobs {
    const hp_device_info *device; /* what is measured */
    int64_t most_images;          /* most images per rank */
    int n;
    calibrate_job job[CALIBRATE_JOBS];
} calibrate_jobs;

/* Number of ranks to run concurrently. */
int32_t calibrate_ranks(const hp_machine *m);
/* Number of steps that take about a second at `step_s` each; at least a warm-up and a median of three. */
int64_t calibrate_steps(double step_s);
/* Does a step take too long for its number of images? Larger batches only repeat what smaller ones tell. */
bool calibrate_is_too_long(double step_s, int32_t batch);

/* Expected time of a step of `samples` images, at `per_mac` operations per multiply-add of a forward pass. */
double calibrate_step_s(const calibrate_jobs *jobs, const hp_graph *g, int64_t samples, double per_mac);
/* Does the device support this precision ("bf16") in this mode? */
bool calibrate_has_prec(const hp_device_info *device, hp_mode mode, const char *name, int32_t *prec);

/* Adds training: the default set, or one network at one size; on one rank, on all cores, and on two tiles. On
 * GPUs, in each available precision, and with two ranks on one GPU. */
hp_status calibrate_add_nets(hp_arena *arena, const hp_machine *m, const char *net, int image_h, int image_w,
                             calibrate_jobs *jobs, hp_error *err);
/* Adds inference likewise, in float32 and 8 bits, whole and in strips (calibrate_infer.c). */
hp_status calibrate_add_inference(hp_arena *arena, const hp_machine *m, const char *net, int image_h,
                                  int image_w, calibrate_jobs *jobs, hp_error *err);
/* Adds `steps` passes over the sizes: messages, and the default all-reduces of plans; with `all`, also every
 * collective by every algorithm. If the machine has several nodes, within a node and between them
 * (calibrate_comm.c). */
void calibrate_add_comm(const hp_machine *m, int64_t steps, bool all, calibrate_jobs *jobs);

/* Checks a cluster on which to run ranks: the machine of that name or file has such devices, and the hostfile
 * has enough nodes. Errors: HP_EUSAGE, HP_EDATA. */
hp_status calibrate_cluster(const hp_device_info *device, const char *name, const char *hostfile,
                            hp_machine *m, hp_error *err);

/* The plan of a job. Errors: HP_EPLAN, HP_EUSAGE (no such network). */
hp_status calibrate_plan(hp_arena *arena, const hp_machine *m, const hp_device_info *device,
                         const calibrate_job *job, const bench_sizes *sizes, hp_plan *plan, hp_error *err);

#endif
