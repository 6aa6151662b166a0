/* bench_commands.h - the subcommands of `hplan bench` that are programs of their own. */
#ifndef HP_BENCH_COMMANDS_H
#define HP_BENCH_COMMANDS_H

/* argv[0] is "hplan bench balance", "hplan bench comm". Return the exit code. */
int bench_balance(int argc, char **argv);
int bench_comm(int argc, char **argv);

#endif
