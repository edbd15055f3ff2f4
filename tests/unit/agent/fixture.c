/* SPDX-License-Identifier: Apache-2.0 */

/* The agent under test and a client of it. */

#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/agent.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "wire/birth.h"

enum { PATIENCE_SECONDS = 30 };

/* Puts the fds where wire/birth.h says, and becomes the program. */
static void exec_agent(const char *program, const char *state_dir, const char *rules, int listen_fd,
                       int cgroup_fd, const int *join_fds, unsigned join_count)
{
    enum { FAR = 100 }; /* out of the way first: they may be in each other's places */
    int from[3 + AGENT_JOIN_MAX], count = 0;
    from[count++] = listen_fd;
    if (cgroup_fd >= 0)
        from[count++] = cgroup_fd;
    for (unsigned i = 0; i < join_count; i++)
        from[count++] = join_fds[i];
    for (int i = 0; i < count; i++)
        from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FAR);
    for (int i = 0; i < count; i++)
        if (dup2(from[i], AGENT_FD_LISTEN + i) < 0)
            exit(3);
    char joins[16] = "none";
    if (cgroup_fd >= 0)
        snprintf(joins, sizeof(joins), "%u", join_count);
    execl(program, "cella-agent", joins, state_dir, rules, NULL);
    exit(3);
}

static struct confinement confinement_of(const char *rules)
{
    return (struct confinement){
        .no_subprocess = strchr(rules, AGENT_RULE_NO_SUBPROCESS) != NULL,
        .no_capabilities = strchr(rules, AGENT_RULE_NO_CAPABILITIES) != NULL,
    };
}

static void run_agent(const char *state_dir, const char *rules, int listen_fd, int cgroup_fd,
                      const int *join_fds, unsigned join_count)
{
    const char *program = getenv("CELLA_AGENT");
    if (program != NULL)
        exec_agent(program, state_dir, rules, listen_fd, cgroup_fd, join_fds, join_count);
    /* The join fds have to be in a row, as the warden leaves them. */
    enum { JOIN_BASE = 200 };
    for (unsigned i = 0; i < join_count; i++)
        if (fcntl(join_fds[i], F_DUPFD_CLOEXEC, JOIN_BASE + (int)i) != JOIN_BASE + (int)i)
            exit(3);
    struct error err;
    int failed = agent_run(&(struct agent_config){.listen_fd = listen_fd,
                                                  .cgroup_fd = cgroup_fd,
                                                  .join_fd = JOIN_BASE,
                                                  .join_count = join_count,
                                                  .ends_on_sigterm = true,
                                                  .state_dir = state_dir,
                                                  .confinement = confinement_of(rules)},
                           &err);
    exit(failed < 0 ? 4 : 0);
}

static struct fixture *start(const char *rules, int cgroup_fd, const int *join_fds,
                             unsigned join_count)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    snprintf(f->dir, sizeof(f->dir), "/tmp/cella-agent-test-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->socket, sizeof(f->socket), "%s/.socket", f->dir);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, f->socket, strlen(f->socket) + 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 64), 0);
    f->agent = fork();
    assert_true(f->agent >= 0);
    if (f->agent == 0) {
        char state_dir[sizeof(f->dir) + 8];
        snprintf(state_dir, sizeof(state_dir), "%s/.state", f->dir);
        free(f);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves nothing behind */
        run_agent(state_dir, rules, fd, cgroup_fd, join_fds, join_count);
    }
    close(fd);
    return f;
}

struct fixture *fixture_start(int cgroup_fd, const int *join_fds, unsigned join_count)
{
    return start("", cgroup_fd, join_fds, join_count);
}

struct fixture *fixture_start_ruled(const char *rules)
{
    return start(rules, -1, NULL, 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    return remove(path);
}

void fixture_stop(struct fixture *f)
{
    int status;
    kill(f->agent, SIGTERM);
    assert_int_equal(waitpid(f->agent, &status, 0), f->agent);
    nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(f);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int fixture_setup(void **state)
{
    *state = fixture_start(-1, NULL, 0);
    return 0;
}

int fixture_teardown(void **state)
{
    fixture_stop(*state);
    return 0;
}

const char *fixture_path(const struct fixture *f, const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof(paths[0]), "%s/%s", f->dir, name);
    return path;
}

struct client client_open(const struct fixture *f)
{
    struct client c = {.in = BUF_INIT(WIRE_PAYLOAD_MAX)};
    c.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, f->socket, strlen(f->socket) + 1);
    assert_int_equal(connect(c.fd, (struct sockaddr *)&address, sizeof(address)), 0);
    /* An agent that does not answer is a failure, not a test that hangs. */
    struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    setsockopt(c.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(c.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    return c;
}

void client_close(struct client *c)
{
    close(c->fd);
    buf_release(&c->in);
}

void client_send(struct client *c, const struct wire_schema *schema, uint32_t id, const void *msg)
{
    struct error err = {0};
    _cleanup_buf_ struct buf out = BUF_INIT(2 * WIRE_PAYLOAD_MAX);
    wire_encode(&out, schema, id, msg);
    if (wire_write(c->fd, &out, &err) < 0)
        fail_msg("sending %s: %s", schema->name, err.message);
}

void client_send_raw(struct client *c, uint16_t type, uint32_t id, const void *data, size_t len)
{
    struct error err = {0};
    _cleanup_buf_ struct buf out = BUF_INIT(2 * WIRE_PAYLOAD_MAX);
    wire_encode_raw(&out, type, id, data, len);
    if (wire_write(c->fd, &out, &err) < 0)
        fail_msg("sending raw bytes: %s", err.message);
}

struct frame_header client_next(struct client *c, struct slice *ret_payload)
{
    struct error err = {0};
    struct frame_header header;
    if (wire_read(c->fd, &c->in, &header, ret_payload, &err) < 0)
        fail_msg("no answer: %s", err.message);
    return header;
}

void client_expect(struct client *c, const struct wire_schema *schema, uint32_t id, void *ret_msg)
{
    struct error err = {0};
    struct slice payload;
    struct frame_header header = client_next(c, &payload);
    if (header.type == WIRE_ERROR && schema->type != WIRE_ERROR) {
        wire_take_error(payload, &err);
        fail_msg("%s expected, not the error %s: %s", schema->name, error_name(err.code),
                 err.message);
    }
    assert_int_equal(header.type, schema->type);
    assert_int_equal(header.id, id);
    if (wire_decode(schema, payload, ret_msg, &err) < 0)
        fail_msg("%s", err.message);
}

void client_expect_error(struct client *c, uint32_t id, enum error_code code, struct error *ret_err)
{
    struct error err = {0};
    struct slice payload;
    struct frame_header header = client_next(c, &payload);
    assert_int_equal(header.type, WIRE_ERROR);
    assert_int_equal(header.id, id);
    wire_take_error(payload, &err);
    if (err.code != code)
        fail_msg("%s expected, not %s: %s", error_name(code), error_name(err.code), err.message);
    if (ret_err != NULL)
        *ret_err = err;
}

void client_expect_end(struct client *c)
{
    char byte;
    ssize_t n = recv(c->fd, &byte, 1, 0);
    if (n > 0)
        fail_msg("the connection is still in use");
    if (n < 0)
        assert_int_equal(errno, ECONNRESET);
}

void client_run(struct client *c, const struct fixture *f, const char *command,
                struct agent_process *ret_process)
{
    struct agent_exec exec = {.command = command, .cwd = f->dir, .flags = EXEC_WAIT};
    client_send(c, &agent_exec_schema, 77, &exec);
    client_expect(c, &agent_process_schema, 77, ret_process);
}

uint64_t client_start(struct client *c, const struct fixture *f, const char *command)
{
    struct agent_process process;
    struct agent_exec exec = {.command = command, .cwd = f->dir};
    client_send(c, &agent_exec_schema, 78, &exec);
    client_expect(c, &agent_process_schema, 78, &process);
    return process.pid;
}

struct agent_process client_wait(struct client *c, uint64_t pid)
{
    struct agent_process process;
    client_send(c, &agent_wait_schema, 79, &(struct agent_ref){pid});
    client_expect(c, &agent_process_schema, 79, &process);
    return process;
}
