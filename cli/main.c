/* main.c - the program: the command line (cli_main.c), and nothing else, which no test could call. */
#include "cli/cli.h"

int main(int argc, char **argv) {
    return cli_main(argc, argv);
}
