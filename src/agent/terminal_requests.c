/* SPDX-License-Identifier: Apache-2.0 */

/* The requests about terminals. */

#include <string.h>

#include "agent/agent.h"
#include "agent/terminal.h"

int handle_terminal_open(struct agent *agent, const struct request *request, const void *msg,
                         struct error *err)
{
    return terminal_open(agent, request, msg, err);
}

/* TERMINALS_MAX answers fit into a connection's queue at once. */
int handle_terminal_list(struct agent *agent, const struct request *request, const void *msg,
                         struct error *err)
{
    for (const struct terminal *t = agent->terminals; t != NULL; t = t->next)
        if (!t->starting && !t->failed && !t->ended && !t->dropped)
            terminal_answer(agent, t, request->connection, request->id, false, 0);
    connection_answer(agent, request->connection, &wire_ok_schema, request->id, NULL);
    return 0;
}

int handle_terminal_attach(struct agent *agent, const struct request *request, const void *msg,
                           struct error *err)
{
    const struct agent_terminal_attach *attach = msg;
    struct terminal *terminal = terminal_find(agent, attach->session, err);
    if (terminal == NULL)
        return -1;
    return terminal_attach(agent, request, terminal, attach, err);
}

/* The session that a request names, or the one that its connection is attached to. */
static struct terminal *terminal_meant(struct agent *agent, const struct request *request,
                                       const char *session, struct error *err)
{
    if (session != NULL)
        return terminal_find(agent, session, err);
    if (request->connection->attachment == NULL) {
        error_set(err, ERROR_INVALID_ARGUMENT, "no session: attach to one, or name it");
        return NULL;
    }
    return request->connection->attachment->terminal;
}

/* Input on an attached connection is counted, and held back when there is no room for more. */
static void take_input(struct agent *agent, struct attachment *a, const struct request *request,
                       size_t len)
{
    a->taken += len;
    if (a->client != NULL)
        a->client->taken = a->taken;
    connection_answer(agent, request->connection, &agent_terminal_taken_schema, request->id,
                      &(struct agent_terminal_taken){.taken = a->taken});
    request->connection->held = !terminal_takes_input(a->terminal);
}

int handle_terminal_input(struct agent *agent, const struct request *request, const void *msg,
                          struct error *err)
{
    const struct agent_terminal_input *input = msg;
    struct terminal *terminal = terminal_meant(agent, request, input->session, err);
    if (terminal == NULL)
        return -1;
    if (input->session == NULL) {
        terminal_write(agent, terminal, input->data);
        take_input(agent, request->connection->attachment, request, input->data.len);
        return 0;
    }
    if (!terminal_takes_input(terminal))
        return error_set(err, ERROR_LIMIT_EXCEEDED,
                         "the terminal's program has not read the last %d bytes of input yet",
                         TERMINAL_INPUT_MAX);
    terminal_write(agent, terminal, input->data);
    terminal_touch(terminal);
    connection_answer(agent, request->connection, &wire_ok_schema, request->id, NULL);
    return 0;
}

int handle_terminal_resize(struct agent *agent, const struct request *request, const void *msg,
                           struct error *err)
{
    const struct agent_terminal_resize *resize = msg;
    struct terminal *terminal = terminal_meant(agent, request, resize->session, err);
    if (terminal == NULL || terminal_resize(terminal, resize->cols, resize->rows, err) < 0)
        return -1;
    connection_answer(agent, request->connection, &wire_ok_schema, request->id, NULL);
    return 0;
}

int handle_terminal_close(struct agent *agent, const struct request *request, const void *msg,
                          struct error *err)
{
    const struct agent_terminal_ref *ref = msg;
    struct terminal *terminal = terminal_find(agent, ref->session, err);
    if (terminal == NULL)
        return -1;
    return terminal_close(agent, terminal, request, err);
}

int handle_terminal_hang_up(struct agent *agent, const struct request *request, const void *msg,
                            struct error *err)
{
    terminals_hang_up(agent);
    connection_answer(agent, request->connection, &wire_ok_schema, request->id, NULL);
    return 0;
}
