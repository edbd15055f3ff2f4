/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor: the same steps as the product's, in one bare resident program. What the product
 * costs on top of this is what HTTP, the database, three processes and safety cost.
 *
 *     floor DIR INIT TRUE BUSYBOX
 *
 * It is driven line by line, so that a runner can take turns between this and the others and the
 * machine's noise hits all alike:
 *
 *     check 1        → nothing, when a sandbox looks from inside as it must
 *     create N       → "create NS", "teardown NS" and "step:… NS" N times
 *     exec N         → "exec NS" N times: barely fork, exec, wait in a running sandbox
 *     exec-cgroup N  → "exec-cgroup NS" N times: with the limits joined and a cgroup of its own
 *     cat-read N     → "cat-read NS" N times, of a 100 MB file
 *     cat-write N
 *     hold N, drop N   makes N sandboxes that stay after their first command, and removes N of them
 *
 * Each answer ends in "done", or in "error TEXT". The end of the input, SIGINT and SIGTERM make
 * it clean up and exit. Signals are blocked and looked at between two measurements, each of which
 * has a time limit, so that nothing is ever left half-made.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/program.h"
#include "floor/cat.h"
#include "floor/check.h"
#include "floor/host.h"
#include "floor/sandbox.h"

static const off_t cat_size = 100ll * 1000 * 1000;

struct floor {
    struct host host;
    struct sandbox resident; /* where execs are measured */
    bool has_resident;
    struct sandbox *held;
    size_t held_count, held_room;
    const char *busybox;
    char echo[300]; /* argv of the first command */
    size_t echo_len;
};

static const char true_argv[] = "/workspace/true";

static bool asked_to_stop(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
}

static void sample(const char *name, int64_t ns)
{
    printf("%s %lld\n", name, (long long)ns);
}

static int measure_create(struct floor *floor, struct error *err)
{
    struct sandbox sandbox;
    int64_t start = now_ns();
    if (sandbox_create(&floor->host, &sandbox, err) < 0)
        return -1;
    int r = sandbox_exec(&sandbox, EXEC_OWN_CGROUP, floor->echo, floor->echo_len, "hi\n", err);
    int64_t output = now_ns();
    struct error ignored;
    if (sandbox_remove(&floor->host, &sandbox, r == 0 ? err : &ignored) < 0)
        r = -1;
    if (r < 0)
        return -1;
    sample("create", output - start);
    sample("teardown", now_ns() - output);
    for (int i = 0; i < STEP_COUNT; i++) {
        printf("step:");
        sample(sandbox_step_names[i], sandbox.step[i]);
    }
    return 0;
}

static int hold(struct floor *floor, struct error *err)
{
    if (floor->held_count == floor->held_room) {
        size_t room = floor->held_room == 0 ? 64 : floor->held_room * 2;
        struct sandbox *held = reallocarray(floor->held, room, sizeof(*held));
        if (held == NULL)
            return error_sys(err, "memory for %zu sandboxes", room);
        floor->held = held;
        floor->held_room = room;
    }
    struct sandbox *sandbox = &floor->held[floor->held_count];
    if (sandbox_create(&floor->host, sandbox, err) < 0)
        return -1;
    floor->held_count++;
    return sandbox_exec(sandbox, EXEC_OWN_CGROUP, floor->echo, floor->echo_len, "hi\n", err);
}

static int drop(struct floor *floor, struct error *err)
{
    if (floor->held_count == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "nothing is held");
    return sandbox_remove(&floor->host, &floor->held[--floor->held_count], err);
}

static int need_resident(struct floor *floor, struct error *err)
{
    if (floor->has_resident)
        return 0;
    if (sandbox_create(&floor->host, &floor->resident, err) < 0)
        return -1;
    floor->has_resident = true;
    return 0;
}

static int check(struct floor *floor, struct error *err)
{
    if (need_resident(floor, err) < 0)
        return -1;
    return check_sandbox(&floor->resident, floor->busybox, err);
}

static int measure_exec_kind(struct floor *floor, enum exec_kind kind, const char *name,
                             struct error *err)
{
    if (need_resident(floor, err) < 0)
        return -1;
    int64_t start = now_ns();
    if (sandbox_exec(&floor->resident, kind, true_argv, sizeof(true_argv), "", err) < 0)
        return -1;
    sample(name, now_ns() - start);
    return 0;
}

static int measure_exec(struct floor *floor, struct error *err)
{
    return measure_exec_kind(floor, EXEC_BARE, "exec", err);
}

static int measure_exec_cgroup(struct floor *floor, struct error *err)
{
    return measure_exec_kind(floor, EXEC_OWN_CGROUP, "exec-cgroup", err);
}

static int measure_cat(struct floor *floor, enum cat_kind kind, const char *name, struct error *err)
{
    int64_t ns;
    if (cat_measure(&floor->host, kind, cat_size, &ns, err) < 0)
        return -1;
    sample(name, ns);
    return 0;
}

static int measure_cat_read(struct floor *floor, struct error *err)
{
    return measure_cat(floor, CAT_DROP, "cat-read", err);
}

static int measure_cat_write(struct floor *floor, struct error *err)
{
    return measure_cat(floor, CAT_STORE, "cat-write", err);
}

static const struct {
    const char *name;
    int (*measure)(struct floor *floor, struct error *err);
} verbs[] = {
    {"check", check},
    {"create", measure_create},
    {"exec", measure_exec},
    {"exec-cgroup", measure_exec_cgroup},
    {"cat-read", measure_cat_read},
    {"cat-write", measure_cat_write},
    {"hold", hold},
    {"drop", drop},
};

static int obey(struct floor *floor, const char *line, struct error *err)
{
    char name[32];
    int count;
    if (sscanf(line, "%31s %d", name, &count) != 2)
        return error_set(err, ERROR_INVALID_ARGUMENT, "not a command: %s", line);
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        if (strcmp(verbs[i].name, name) != 0)
            continue;
        for (int n = 0; n < count && !asked_to_stop(); n++)
            if (verbs[i].measure(floor, err) < 0)
                return -1;
        return 0;
    }
    return error_set(err, ERROR_INVALID_ARGUMENT, "no such command: %s", name);
}

/* The next line, or NULL at the end of the input or when a signal asks to stop. */
static char *next_line(int signals, char *line, int size)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = signals, .events = POLLIN}};
    if (poll(fds, ARRAY_LEN(fds), -1) < 0 || fds[1].revents != 0)
        return NULL;
    return fgets(line, size, stdin);
}

static int serve(struct floor *floor, int signals)
{
    struct error err;
    char line[128];
    printf("ready\n");
    while (next_line(signals, line, sizeof(line)) != NULL) {
        if (obey(floor, line, &err) < 0) {
            printf("error %s\n", err.message);
            return 1;
        }
        printf("done\n");
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: floor DIR INIT TRUE BUSYBOX\n");
        return 2;
    }
    program_allow_files();
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0); /* so that poll() sees what there is */
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);
    _cleanup_fd_ int signals = signalfd(-1, &stop, SFD_CLOEXEC);

    struct floor floor = {.busybox = argv[4]};
    floor.echo_len =
        (size_t)snprintf(floor.echo, sizeof(floor.echo), "%s%cecho%chi", argv[4], 0, 0) + 1;

    struct error err;
    int status = 1;
    if (host_init(&floor.host, argv[1], argv[2], argv[3], &err) < 0)
        printf("error %s\n", err.message);
    else
        status = serve(&floor, signals);
    while (floor.held_count > 0)
        if (drop(&floor, &err) < 0)
            fprintf(stderr, "floor: %s\n", err.message);
    free(floor.held);
    if (floor.has_resident && sandbox_remove(&floor.host, &floor.resident, &err) < 0)
        fprintf(stderr, "floor: %s\n", err.message);
    host_release(&floor.host);
    return status;
}
