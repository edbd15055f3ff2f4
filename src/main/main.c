/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One program with three faces: the command line, `cella server` (a verb of it: the supervisor),
 * and cellad, which the supervisor starts under that name.
 */

#include <string.h>

#include "cli/cli.h"
#include "main/cellad.h"

int main(int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "cellad") == 0)
        return cellad_main(argc, argv);
    return cli_main(argc, argv);
}
