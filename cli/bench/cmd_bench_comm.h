/* cmd_bench_comm.h - `hplan bench comm`. */
#ifndef HP_CMD_BENCH_COMM_H
#define HP_CMD_BENCH_COMM_H

/* argv[0] is "hplan bench comm"; returns the exit code. */
int bench_comm(int argc, char **argv);

#endif
