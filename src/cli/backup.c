/* SPDX-License-Identifier: Apache-2.0 */

/* A server's state as one file, and back: done by src/main (cli.h), which knows the data folder. */

#include "base/layout.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/settings.h"
#include "cli/verbs.h"

int verb_backup(struct invocation *inv, int *ret_status, struct error *err)
{
    return server_backup(settings_data(inv->args), args_word(inv->args, "FILE"), err);
}

int verb_restore(struct invocation *inv, int *ret_status, struct error *err)
{
    return server_restore(args_word(inv->args, "FILE"), settings_data(inv->args),
                          args_option(inv->args, "user", DEFAULT_USER), err);
}
