/* bench_balance.h - `hplan bench balance`. */
#ifndef HP_BENCH_BALANCE_H
#define HP_BENCH_BALANCE_H

/* argv[0] is "hplan bench balance"; returns the exit code. */
int bench_balance(int argc, char **argv);

#endif
