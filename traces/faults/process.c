/* process.c - /proc/PID/stat of each thread: proc(5). */
#include "traces/faults/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What follows the name, which may contain anything, in `text`: the state comes first, as field 3.
 * NULL: no such file. */
static const char *after_name(const char *path, char text[1024]) {
    FILE *f = fopen(path, "re");
    const size_t n = f ? fread(text, 1, 1023, f) : 0;
    if (f) fclose(f);
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' ? end + 2 : NULL;
}

static hp_process_state state_of_letter(char letter) {
    switch (letter) {
    case 'R':
        return HP_PROCESS_RUNS;
    case 'D':
        return HP_PROCESS_DISK;
    case 'T':
    case 't':
        return HP_PROCESS_STOPPED;
    case 'Z':
    case 'X':
        return HP_PROCESS_GONE;
    default:
        return HP_PROCESS_SLEEPS;
    }
}

/* The most telling state of a process's threads: waiting for a disk, then computing. */
static hp_process_state state_of_all(hp_process_state a, hp_process_state b) {
    static const int WEIGHT[HP_PROCESS_STATES] = {
        [HP_PROCESS_SLEEPS] = 1, [HP_PROCESS_RUNS] = 2, [HP_PROCESS_DISK] = 3, [HP_PROCESS_STOPPED] = 4};
    return WEIGHT[b] > WEIGHT[a] ? b : a;
}

bool hp_process_decodes(int32_t pid) {
    static const char NAME[] = HP_DECODER_NAME "\n";
    char path[64], text[sizeof NAME] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *f = fopen(path, "re");
    const bool is = f && fgets(text, sizeof text, f) && strcmp(text, NAME) == 0;
    if (f) fclose(f);
    return is;
}

/* State of the decoders, which the first thread starts (exec/data/image/decoders.c). */
static hp_process_state state_of_decoders(int32_t pid) {
    char path[64], number[16];
    hp_process_state s = HP_PROCESS_GONE;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fscanf(f, "%15s", number) == 1)
        if (hp_process_decodes(atoi(number))) s = state_of_all(s, hp_process_state_of(atoi(number)));
    if (f) fclose(f);
    return s;
}

hp_process_state hp_process_state_of(int32_t pid) {
    char path[64], text[1024];
    hp_process_state s = HP_PROCESS_GONE;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, atoi(e->d_name));
        const char *state = after_name(path, text);
        if (state) s = state_of_all(s, state_of_letter(*state));
    }
    if (d) closedir(d);
    return s == HP_PROCESS_GONE ? s : state_of_all(s, state_of_decoders(pid));
}

uint64_t hp_process_begin(int32_t pid) {
    enum { STATE = 3, START = 22 };
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *at = after_name(path, text);
    for (int field = STATE; at && field < START; field++) {
        at = strchr(at, ' ');
        if (at) at++;
    }
    return at ? strtoull(at, NULL, 10) : 0;
}
