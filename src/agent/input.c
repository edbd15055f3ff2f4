/* SPDX-License-Identifier: Apache-2.0 */

/* Writing to the stdin of processes, never blocking. */

#include "agent/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/connection.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "wire/messages.h"

struct piece {
    struct piece *next;
    struct connection *connection; /* NULL: nobody waits for it */
    uint32_t id;
    size_t len, sent;
    char data[];
};

void input_init(struct input *input)
{
    *input = (struct input){.watch = {.fd = -1}};
    input->last = &input->first;
}

static int closed(struct error *err)
{
    return error_set(err, ERROR_STDIN_CLOSED, "the process's stdin was closed");
}

static struct piece *take_first(struct input *input)
{
    struct piece *piece = input->first;
    input->first = piece->next;
    if (input->first == NULL)
        input->last = &input->first;
    input->count--;
    return piece;
}

void input_close(struct agent *agent, struct input *input)
{
    struct error err;
    closed(&err);
    watch_stop(agent, &input->watch);
    while (input->first != NULL) {
        struct piece *piece = take_first(input);
        if (piece->connection != NULL)
            connection_answer_error(agent, piece->connection, piece->id, &err);
        free(piece);
    }
}

/* Writes what can be written; false when nobody reads any more. */
static bool write_some(const struct input *input, struct piece *piece)
{
    while (piece->sent < piece->len) {
        ssize_t n = write(input->watch.fd, piece->data + piece->sent, piece->len - piece->sent);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        piece->sent += (size_t)n;
    }
    return true;
}

static void go_on(struct agent *agent, struct input *input)
{
    while (input->first != NULL) {
        struct piece *piece = input->first;
        if (!write_some(input, piece)) {
            input_close(agent, input);
            return;
        }
        if (piece->sent < piece->len) {
            watch_resume(agent, &input->watch);
            return;
        }
        take_first(input);
        if (piece->connection != NULL)
            connection_answer(agent, piece->connection, &wire_ok_schema, piece->id, NULL);
        free(piece);
    }
    if (input->ending)
        input_close(agent, input);
    else /* the loop looks at the pipe only while something waits for it */
        watch_pause(agent, &input->watch);
}

static void input_ready(struct agent *agent, struct watch *watch, uint32_t events)
{
    struct input *input = container_of(watch, struct input, watch);
    if (events & EPOLLERR) /* the last reader has closed it */
        input_close(agent, input);
    else
        go_on(agent, input);
}

void input_open(struct agent *agent, struct input *input, int fd)
{
    input->given = true;
    input->ending = false;
    if (watch_start(agent, &input->watch, fd, EPOLLOUT, input_ready, NULL) < 0)
        close(fd); /* no memory: a process whose input has ended */
    else
        watch_pause(agent, &input->watch);
}

static int check(const struct input *input, struct error *err)
{
    if (!input->given)
        return error_set(err, ERROR_NO_STDIN,
                         "the process was started without stdin (\"stdin\": true)");
    if (input->watch.fd < 0 || input->ending)
        return closed(err);
    return 0;
}

int input_write(struct agent *agent, struct input *input, struct connection *connection,
                uint32_t id, struct slice data, struct error *err)
{
    if (check(input, err) < 0)
        return -1;
    if (input->count >= PROCESS_INPUTS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%d writers wait for this stdin already",
                         PROCESS_INPUTS_MAX);
    struct piece *piece = malloc(sizeof(*piece) + data.len);
    if (piece == NULL)
        return error_sys(err, "taking %zu bytes for stdin", data.len);
    *piece = (struct piece){.connection = connection, .id = id, .len = data.len};
    if (data.len > 0)
        memcpy(piece->data, data.data, data.len);
    *input->last = piece;
    input->last = &piece->next;
    input->count++;
    if (input->count == 1)
        go_on(agent, input);
    return 0;
}

int input_end(struct agent *agent, struct input *input, struct error *err)
{
    if (check(input, err) < 0)
        return -1;
    input->ending = true;
    if (input->first == NULL)
        input_close(agent, input);
    return 0;
}

void input_forget(struct input *input, const struct connection *connection, uint32_t id)
{
    for (struct piece **at = &input->first; *at != NULL;) {
        struct piece *piece = *at;
        bool meant = piece->connection == connection && (id == 0 || piece->id == id);
        if (meant && piece->sent > 0)
            piece->connection = NULL; /* half of it is out: the rest follows */
        if (!meant || piece->sent > 0) {
            at = &piece->next;
            continue;
        }
        *at = piece->next;
        input->count--;
        free(piece);
    }
    input->last = &input->first;
    while (*input->last != NULL)
        input->last = &(*input->last)->next;
}
