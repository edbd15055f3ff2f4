/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From argv to an exit status: parse, find the verb, run it (on a coroutine when it speaks to a
 * server, because the HTTP client is written for one), and say what went wrong.
 */

#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/args.h"
#include "cli/client.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "loop/co.h"

/* A remote verb on its way through the loop. */
struct remote {
    struct invocation *inv;
    struct loop *loop;
    int status;
    int result;
    struct error err;
};

static void run_on_coroutine(void *arg)
{
    struct remote *remote = arg;
    remote->result = remote->inv->args->verb->run(remote->inv, &remote->status, &remote->err);
    loop_stop(remote->loop);
}

static void cleanup_loop(struct loop **loop)
{
    loop_free(*loop);
}

static void cleanup_client(struct client **client)
{
    client_free(*client);
}

static int run_remote(struct invocation *inv, int *ret_status, struct error *err)
{
    struct settings settings;
    /* A reader that went away is seen where it is written to; a server that did, as an error. Not
     * for local verbs: what they start would inherit it. */
    signal(SIGPIPE, SIG_IGN);
    if (settings_find(inv->args, &settings, err) < 0)
        return -1;
    _cleanup_(cleanup_loop) struct loop *loop = loop_new(err);
    if (loop == NULL)
        return -1;
    _cleanup_(cleanup_client) struct client *client = NULL;
    if (client_new(loop, &settings, &client, err) < 0)
        return -1;
    inv->client = client;
    struct remote remote = {.inv = inv, .loop = loop, .result = -1};
    if (co_spawn(loop, run_on_coroutine, &remote, NULL, err) < 0 || loop_run(loop, err) < 0)
        return -1;
    *ret_status = remote.status;
    if (remote.result < 0)
        *err = remote.err;
    return remote.result;
}

static int run(const struct commands *commands, struct args *args, int argc, char **argv,
               int *ret_status, struct error *err)
{
    if (args_split(commands, argc, argv, args, err) < 0)
        return -1;
    const char *output = args_option(args, "output", "table");
    struct invocation inv = {.commands = commands, .args = args, .json = output[0] == 'j'};
    if (args_flag(args, "help"))
        return verb_help(&inv, ret_status, err);
    if (args_flag(args, "version"))
        return verb_version(&inv, ret_status, err);
    if (args_bind(commands, args, err) < 0)
        return -1;
    return args->verb->place == VERB_REMOTE ? run_remote(&inv, ret_status, err)
                                            : args->verb->run(&inv, ret_status, err);
}

int cli_main(int argc, char **argv)
{
    struct error err = {0};
    int status = 0;
    _cleanup_(args_release) struct args args = {0};
    if (run(&cli_commands, &args, argc, argv, &status, &err) == 0)
        return status;
    output_error(&err);
    if (args.verb == NULL && err.code == ERROR_INVALID_ARGUMENT)
        fprintf(stderr, "`cella help` shows all commands.\n");
    return error_exit_status(err.code);
}
