/* serving.c - percentiles of latency, their confidence, and MLPerf's requirements for a run. */
#include "traces/serving.h"
#include "base/alloc.h"

#include "base/status.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

const hp_scenario_info hp_scenario_infos[HP_SCENARIOS] = {
    [HP_SINGLE_STREAM] = {"single-stream", 1, 900, 0, 600},
    [HP_MULTI_STREAM] = {"multi-stream", 8, 990, 0, 600},
    [HP_OFFLINE] = {"offline", 0, 0, 24576, 600},
};

hp_scenario hp_scenario_find(const char *name) {
    int i = 0;
    while (i < HP_SCENARIOS && strcmp(hp_scenario_infos[i].name, name) != 0) i++;
    return (hp_scenario)i;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double hp_serving_percentile(const double *sorted, int64_t n, int32_t permille) {
    HP_ASSERT(n >= 1 && permille >= 0 && permille < 1000);
    return sorted[n / 1000 * permille + n % 1000 * permille / 1000]; /* avoids overflow of n * permille */
}

hp_serving hp_serving_of(double *latency_s, int64_t n, int64_t query_images) {
    HP_ASSERT(n >= 1);
    qsort(latency_s, (size_t)n, sizeof *latency_s, ascending);
    double busy_s = 0;
    for (int64_t i = 0; i < n; i++) busy_s += latency_s[i];
    return (hp_serving){.queries = n,
                        .images = n * query_images,
                        .busy_s = busy_s,
                        .images_per_s = (double)(n * query_images) / busy_s,
                        .mean_s = busy_s / (double)n,
                        .p50_s = hp_serving_percentile(latency_s, n, 500),
                        .p90_s = hp_serving_percentile(latency_s, n, 900),
                        .p99_s = hp_serving_percentile(latency_s, n, 990)};
}

/* --- rounds --- */

static double median_at(const hp_serving *round, int n, size_t at) {
    double *v = hp_zeroed((size_t)n, sizeof *v);
    for (int i = 0; i < n; i++) memcpy(&v[i], (const char *)&round[i] + at, sizeof *v);
    qsort(v, (size_t)n, sizeof *v, ascending);
    const double m = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
    free(v);
    return m;
}

hp_serving hp_serving_median(const hp_serving *round, int n) {
    static const size_t FIGURES[] = {offsetof(hp_serving, images_per_s), offsetof(hp_serving, mean_s),
                                     offsetof(hp_serving, p50_s), offsetof(hp_serving, p90_s),
                                     offsetof(hp_serving, p99_s)};
    HP_ASSERT(n >= 1);
    hp_serving m = {0};
    for (int i = 0; i < n; i++) {
        m.queries += round[i].queries;
        m.images += round[i].images;
        m.busy_s += round[i].busy_s;
    }
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++) {
        const double v = median_at(round, n, FIGURES[i]);
        memcpy((char *)&m + FIGURES[i], &v, sizeof v);
    }
    return m;
}

/* --- early stopping --- */

static const double DOUBT = 0.01; /* 99% confidence */

/* Probability of at most `most` queries above the percentile among n, if exactly 1 - p of all queries were
 * above it: the tail of the binomial distribution. */
static double tail_probability(int64_t n, int64_t most, double p) {
    double sum = 0;
    for (int64_t k = 0; k <= most && k <= n; k++)
        sum += exp(lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1) +
                   (double)(n - k) * log(p) + (double)k * log1p(-p));
    return sum;
}

double hp_serving_early_stop(const double *sorted, int64_t n, int32_t permille) {
    const double p = permille / 1000.0;
    if (tail_probability(n, 1, p) >= DOUBT) return NAN;
    /* high: the expected number, whose probability is above one half */
    int64_t low = 1, high = (int64_t)ceil((double)n * (1 - p));
    while (high - low > 1) {
        const int64_t mid = low + (high - low) / 2;
        if (tail_probability(n, mid, p) < DOUBT)
            low = mid;
        else
            high = mid;
    }
    return sorted[n - low];
}

int64_t hp_serving_min_queries(int32_t permille) {
    int64_t n = 1;
    while (permille > 0 && tail_probability(n, 1, permille / 1000.0) >= DOUBT) n++;
    return n;
}

/* --- requirements --- */

static void add_missing(hp_text why, double have, double want, const char *unit) {
    if (have < want) hp_text_add(why, "%s%.3g of %.6g %s", why.out[0] ? ", " : "", have, want, unit);
}

bool hp_serving_complete(hp_scenario scenario, const hp_serving *all, char *why, size_t size) {
    const hp_scenario_info *rule = &hp_scenario_infos[scenario];
    const hp_text text = {why, size};
    why[0] = '\0';
    add_missing(text, all->busy_s, rule->min_s, "s");
    add_missing(text, (double)all->queries, (double)hp_serving_min_queries(rule->tail_permille), "queries");
    add_missing(text, (double)all->images, (double)rule->min_images, "images");
    return !why[0];
}
