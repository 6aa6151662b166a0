/* backend.c - what carries which messages. */
#include "plan/strategy/strategy.h"
#include "networks/graph/precision.h"

#include <stdio.h>
#include <string.h>

const char *const hp_traffic_names[HP_TRAFFICS] = {
    [HP_TRAFFIC_HALO] = "halo",
    [HP_TRAFFIC_STAGE] = "stage",
    [HP_TRAFFIC_STATS] = "stats",
#define COLLECTIVE(ID, name, ...) [HP_TRAFFIC_##ID] = name,
#include "plan/collectives/collectives.def"
};

/* --- text --- */

static int find_backend(const char *word) {
    int b = HP_BACKENDS - 1;
    while (b >= 0 && strcmp(hp_backend_names[b], word) != 0) b--;
    return b;
}

static hp_status parse_algorithm(const char *name, int backend, hp_algorithm *algorithm, hp_error *err) {
    const int found = hp_algorithm_find(name);
    if (!hp_backend_steps(backend))
        return hp_fail(err, HP_EUSAGE,
                       "strategy: comm: %s chooses its algorithms itself; only own and shm take one",
                       hp_backend_names[backend]);
    if (found <= (int)HP_ALGORITHM_LIBRARY) {
        char names[120] = "";
        for (int a = HP_ALGORITHM_LIBRARY + 1; a < HP_ALGORITHMS; a++) {
            const size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", hp_algorithms[a]->name);
        }
        return hp_fail(err, HP_EUSAGE, "strategy: comm: no algorithm is called '%.40s'; choose %s", name,
                       names);
    }
    *algorithm = (hp_algorithm)found;
    return HP_OK;
}

/* "own.ring" */
static hp_status parse_choice(char *word, int32_t *choice, hp_error *err) {
    char *dot = strchr(word, '.');
    if (dot) *dot++ = 0;
    *choice = HP_COMM_AUTO;
    if (!dot && strcmp(word, "auto") == 0) return HP_OK;
    const int backend = find_backend(word);
    if (backend < 0)
        return hp_fail(err, HP_EUSAGE,
                       "strategy: comm: no back end is called '%.40s'; choose auto, own, mpi, nccl or shm",
                       word);
    hp_algorithm algorithm = HP_ALGORITHM_LIBRARY;
    if (dot) HP_TRY(parse_algorithm(dot, backend, &algorithm, err));
    *choice = hp_comm_choice((hp_backend)backend, algorithm);
    return HP_OK;
}

/* Its algorithm must be one for that collective; which members it has is known later. */
static hp_status check_algorithm(int traffic, int32_t choice, hp_error *err) {
    const hp_algorithm a = hp_comm_algorithm(choice);
    const int what = traffic == HP_TRAFFIC_STATS ? HP_COLLECTIVE_ALLREDUCE : traffic - HP_TRAFFIC_ALLREDUCE;
    if (a == HP_ALGORITHM_LIBRARY) return HP_OK;
    if (hp_traffic_collective((hp_traffic)traffic) && hp_algorithms[a]->does & 1u << what) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "strategy: comm: %s is no algorithm for %s", hp_algorithms[a]->name,
                   hp_traffic_names[traffic]);
}

/* "halo:mpi" */
static hp_status parse_one(char *item, int32_t choice[HP_TRAFFICS], bool seen[HP_TRAFFICS], hp_error *err) {
    char *word = strchr(item, ':');
    if (word) *word++ = 0;
    for (int i = 0; word && i < HP_TRAFFICS; i++) {
        if (strcmp(hp_traffic_names[i], item) != 0) continue;
        if (seen[i]) return hp_fail(err, HP_EUSAGE, "strategy: comm: %s is given twice", item);
        seen[i] = true;
        HP_TRY(parse_choice(word, &choice[i], err));
        return check_algorithm(i, choice[i], err);
    }
    return hp_fail(
        err, HP_EUSAGE,
        "strategy: comm: '%.40s' is not halo, stage, stats or a collective with a back end, for example "
        "comm=halo:shm+allreduce:own.ring",
        item);
}

hp_status hp_comm_parse(const char *value, int32_t choice[HP_TRAFFICS], hp_error *err) {
    char copy[HP_COMM_TEXT], *rest = copy;
    bool seen[HP_TRAFFICS] = {false};
    snprintf(copy, sizeof copy, "%s", value);
    if (!strchr(value, ':')) {
        HP_TRY(parse_choice(copy, &choice[0], err));
        if (hp_comm_algorithm(choice[0]))
            return hp_fail(err, HP_EUSAGE,
                           "strategy: comm: an algorithm belongs to a collective, as in "
                           "comm=allreduce:own.ring");
        for (int i = 1; i < HP_TRAFFICS; i++) choice[i] = choice[0];
        return HP_OK;
    }
    for (int i = 0; i < HP_TRAFFICS; i++) choice[i] = HP_COMM_AUTO;
    for (char *item = strsep(&rest, "+"); item; item = strsep(&rest, "+"))
        HP_TRY(parse_one(item, choice, seen, err));
    hp_comm_settle(choice);
    return HP_OK;
}

void hp_comm_settle(int32_t choice[HP_TRAFFICS]) {
    for (int i = 1; i < HP_TRAFFICS; i++) {
        const int32_t expected = hp_traffic_of_networks((hp_traffic)i) ? choice[0] : HP_COMM_AUTO;
        if (choice[i] != expected) return;
    }
    for (int i = 1; i < HP_TRAFFICS; i++) choice[i] = choice[0];
}

static bool all_alike(const int32_t choice[HP_TRAFFICS]) {
    for (int i = 1; i < HP_TRAFFICS; i++)
        if (choice[i] != choice[0]) return false;
    return true;
}

bool hp_comm_is_auto(const int32_t choice[HP_TRAFFICS]) {
    return choice[0] == HP_COMM_AUTO && all_alike(choice);
}

static hp_backend backend_of(int32_t choice) {
    return (hp_backend)((choice & ((1 << HP_COMM_ALGORITHM) - 1)) - 1);
}

static void choice_text(int32_t choice, char *out, size_t n) {
    const hp_algorithm a = hp_comm_algorithm(choice);
    snprintf(out, n, "%s%s%s", hp_backend_names[backend_of(choice)], a ? "." : "",
             a ? hp_algorithms[a]->name : "");
}

void hp_comm_text(const int32_t choice[HP_TRAFFICS], char *out, size_t n) {
    char word[48];
    out[0] = 0;
    if (hp_comm_is_auto(choice)) {
        snprintf(out, n, "auto");
    } else if (all_alike(choice)) {
        choice_text(choice[0], out, n);
    } else {
        for (int i = 0; i < HP_TRAFFICS; i++) {
            const size_t used = strlen(out);
            if (choice[i] == HP_COMM_AUTO) continue;
            choice_text(choice[i], word, sizeof word);
            snprintf(out + used, n - used, "%s%s:%s", used ? "+" : "", hp_traffic_names[i], word);
        }
    }
}

/* --- devices --- */

/* NCCL refuses two ranks on one GPU. */
static const bool wants_device_of_its_own[HP_BACKENDS] = {[HP_BACKEND_NCCL] = true};

hp_backend hp_comm_backend(int32_t choice, hp_traffic traffic, const hp_device_info *device, int clients) {
    hp_backend b = device ? device->own_backend : HP_BACKEND_OWN;
    if (wants_device_of_its_own[b] && clients > 1) b = HP_BACKEND_OWN;
    if (choice != HP_COMM_AUTO) b = backend_of(choice);
    return b == HP_BACKEND_OWN && !hp_traffic_collective(traffic) ? HP_BACKEND_MPI : b;
}

bool hp_comm_wants_devices(int32_t choice) {
    return choice != HP_COMM_AUTO && wants_device_of_its_own[backend_of(choice)];
}
