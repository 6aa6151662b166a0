/* serving.h - serving performance: percentiles and throughput from the latencies of queries, in the scenarios
 * of MLPerf Inference (Reddi et al., ISCA 2020). Scenarios, minimum duration and number of images:
 * inference_rules.adoc of MLCommons. Percentiles and early stopping as its LoadGen computes them (results.cc,
 * early_stopping.cc). Closed loop: a query is sent after the previous one is answered. */
#ifndef HP_SERVING_H
#define HP_SERVING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hp_scenario { HP_SINGLE_STREAM, HP_MULTI_STREAM, HP_OFFLINE, HP_SCENARIOS } hp_scenario;

typedef struct hp_scenario_info {
    const char *name;
    int32_t query_images;  /* 0: any number */
    int32_t tail_permille; /* percentile that is the scenario's figure; 0: its figure is images/s */
    int64_t min_images;    /* minimum number of images in a run */
    double min_s;          /* minimum duration of a run */
} hp_scenario_info;

extern const hp_scenario_info hp_scenario_infos[HP_SCENARIOS];

/* HP_SCENARIOS: no scenario of that name. */
hp_scenario hp_scenario_find(const char *name);

/* Statistics of one round, or of all rounds together. */
typedef struct hp_serving {
    int64_t queries, images;
    double busy_s; /* sum of the latencies: one query at a time */
    double images_per_s;
    double mean_s, p50_s, p90_s, p99_s; /* latency of a query */
} hp_serving;

/* For n >= 1 queries of query_images each; sorts `latency_s`. */
hp_serving hp_serving_of(double *latency_s, int64_t n, int64_t query_images);
/* Medians of rates and latencies over n >= 1 rounds, sums of counts. A single disturbed round
 * does not change them. */
hp_serving hp_serving_median(const hp_serving *round, int n);

/* The value that at most (1 - permille/1000) of all values exceed: element floor(n * permille / 1000), from
 * 0, of the sorted values. n >= 1, permille < 1000. */
double hp_serving_percentile(const double *sorted, int64_t n, int32_t permille);

/* An upper bound of that percentile with 99% confidence; NaN if n is too small to have one. */
double hp_serving_early_stop(const double *sorted, int64_t n, int32_t permille);
/* The smallest number of queries that has such a bound: 64 for the 90th percentile. */
int64_t hp_serving_min_queries(int32_t permille);

/* Would MLPerf's rules accept a run of this length? `why` lists what is missing ("6 of 600 s, 20 of
 * 64 queries"), or "". */
bool hp_serving_complete(hp_scenario scenario, const hp_serving *all, char *why, size_t size);

#endif
