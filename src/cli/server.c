/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella server` lives in src/main; here its options are only checked, and handed over in the one
 * shape that cli.h promises.
 */

#include "cli/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/settings.h"

int verb_server(struct invocation *inv, int *ret_status, struct error *err)
{
    const struct args *args = inv->args;
    /* The title, the data folder, a name and a value for each option, and the NULL at the end. */
    _cleanup_free_ char **argv = calloc(2 * args->option_count + 4, sizeof(*argv));
    _cleanup_free_ char *names = calloc(args->option_count + 1, OPTION_NAME_SIZE);
    if (argv == NULL || names == NULL)
        return error_set(err, ERROR_INTERNAL, "out of memory");
    char title[] = "cella server", data[] = "--data";
    int argc = 0;
    argv[argc++] = title;
    argv[argc++] = data;
    argv[argc++] = (char *)settings_data(args);
    for (size_t i = 0; i < args->option_count; i++) {
        const char *name = args->options[i].row->name;
        if (strcmp(name, "data") == 0)
            continue;
        if (option_find(args->verb->options, name, strlen(name)) == NULL)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "--%s is for commands that speak to a server", name);
        char *dashed = names + i * OPTION_NAME_SIZE;
        snprintf(dashed, OPTION_NAME_SIZE, "--%s", name);
        argv[argc++] = dashed;
        if (args->options[i].value != NULL)
            argv[argc++] = (char *)args->options[i].value;
    }
    *ret_status = server_main(argc, argv);
    return 0;
}
