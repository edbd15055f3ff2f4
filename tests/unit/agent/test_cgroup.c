/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Commands in real cgroups: a folder of our own in the v2 tree stands for the sandbox's. A plain
 * file stands for the `tasks` of a v1 controller, which a command joins by writing "0".
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "fixture.h"

struct sandbox {
    struct fixture *f;
    char tree[96];
    char tasks[64];
};

static const char *const roots[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"};

static const char *find_root(void)
{
    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        char path[96];
        snprintf(path, sizeof(path), "%s/cgroup.procs", roots[i]);
        if (access(path, W_OK) == 0)
            return roots[i];
    }
    return NULL;
}

static int setup(void **state)
{
    struct sandbox *s = calloc(1, sizeof(*s));
    snprintf(s->tree, sizeof(s->tree), "%s/cella-agent-test-%d-tree", find_root(), (int)getpid());
    assert_int_equal(mkdir(s->tree, 0755), 0);
    snprintf(s->tasks, sizeof(s->tasks), "/tmp/cella-agent-test-XXXXXX");
    int join = mkostemp(s->tasks, O_APPEND | O_CLOEXEC);
    int tree = open(s->tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(join >= 0 && tree >= 0);
    s->f = fixture_start(tree, &join, 1);
    close(join);
    close(tree);
    *state = s;
    return 0;
}

static bool is_populated(const struct sandbox *s, const char *name)
{
    char path[512], text[128] = {0};
    snprintf(path, sizeof(path), "%s/%s/cgroup.events", s->tree, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    (void)!read(fd, text, sizeof(text) - 1);
    close(fd);
    return strstr(text, "populated 1") != NULL;
}

/* The trees in which something runs: one for each command that is not over.
 * *ret_all counts the empty ones too. */
static int count_children(const struct sandbox *s, int *ret_all)
{
    DIR *dir = opendir(s->tree);
    assert_non_null(dir);
    int count = 0, all = 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_type == DT_DIR && e->d_name[0] == 'e') {
            all++;
            count += is_populated(s, e->d_name);
        }
    closedir(dir);
    if (ret_all != NULL)
        *ret_all = all;
    return count;
}

/* What was killed a moment ago may still be leaving. */
static void remove_group(const char *path)
{
    const struct timespec moment = {.tv_nsec = 1000 * 1000};
    for (int i = 0; rmdir(path) < 0; i++) {
        assert_int_equal(errno, EBUSY);
        assert_true(i < 10 * 1000);
        nanosleep(&moment, NULL);
    }
}

/* As the warden does it: whatever is left is killed, and the folders go. */
static int teardown(void **state)
{
    struct sandbox *s = *state;
    fixture_stop(s->f);
    char path[512];
    snprintf(path, sizeof(path), "%s/cgroup.kill", s->tree);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(fd, "1", 1), 1);
    close(fd);
    DIR *dir = opendir(s->tree);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_type != DT_DIR || e->d_name[0] != 'e')
            continue;
        snprintf(path, sizeof(path), "%s/%s", s->tree, e->d_name);
        remove_group(path);
    }
    closedir(dir);
    remove_group(s->tree);
    unlink(s->tasks);
    free(s);
    return 0;
}

static bool is_alive(pid_t pid)
{
    char path[64], text[256] = {0};
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    return n > 0 && strstr(text, ") Z") == NULL;
}

/* The number that the command printed, once it has. */
static pid_t printed_pid(struct client *c, uint64_t pid)
{
    struct agent_log log = {0};
    char text[32] = {0};
    while (memchr(text, '\n', sizeof(text)) == NULL) {
        client_send(c, &agent_log_read_schema, 1,
                    &(struct agent_log_read){.pid = pid, .stream = LOG_STDOUT, .max = 30});
        client_expect(c, &agent_log_schema, 1, &log);
        if (log.data.len > 0)
            memcpy(text, log.data.data, log.data.len);
    }
    return (pid_t)strtol(text, NULL, 10);
}

static void test_own_cgroup(void **state)
{
    const struct sandbox *s = *state;
    struct client c = client_open(s->f);
    struct agent_process p;
    for (int i = 0; i < 4; i++) {
        client_run(&c, s->f, "grep ^0:: /proc/self/cgroup; cat /proc/self/oom_score_adj", &p);
        assert_int_equal(p.exit_code, 0);
        char text[256] = {0};
        memcpy(text, p.stdout_data.data, p.stdout_data.len);
        assert_non_null(strstr(text, "-tree/e"));
        assert_non_null(strstr(text, "\n200\n"));
    }
    struct stat st;
    assert_int_equal(stat(s->tasks, &st), 0);
    assert_int_equal(st.st_size, 4); /* a "0" of each */
    int all;
    while (count_children(s, &all) > 0)
        ;
    assert_true(all <= 2); /* kept for use again */
    client_close(&c);
}

static const char escaping[] = "setsid sh -c 'trap \"\" TERM; sleep 100 & echo $!; wait' & wait";

static void test_timeout_takes_all(void **state)
{
    const struct sandbox *s = *state;
    struct client c = client_open(s->f);
    struct agent_process p;
    struct agent_exec exec = {
        .command = escaping, .cwd = "/", .timeout_ms = 2000, .flags = EXEC_WAIT};
    client_send(&c, &agent_exec_schema, 1, &exec);
    client_expect(&c, &agent_process_schema, 1, &p);
    assert_int_equal(p.state, PROCESS_TIMED_OUT);
    pid_t grandchild = printed_pid(&c, p.pid);
    assert_true(grandchild > 1);
    client_send(&c, &agent_stop_schema, 2, &(struct agent_stop){.pid = p.pid});
    client_expect(&c, &agent_process_schema, 2, &p);
    assert_false(is_alive(grandchild));
    client_close(&c);
}

static void test_stop_takes_all(void **state)
{
    const struct sandbox *s = *state;
    struct client c = client_open(s->f);
    struct agent_process p;
    static const uint64_t graces[] = {0, 50, 10000};
    for (size_t i = 0; i < ARRAY_LEN(graces); i++) {
        /* With the long grace everybody has to be reached by SIGTERM alone. */
        uint64_t pid = client_start(
            &c, s->f,
            graces[i] == 10000 ? "setsid sh -c 'sleep 100 & echo $!; wait' & wait" : escaping);
        pid_t grandchild = printed_pid(&c, pid);
        assert_true(is_alive(grandchild));
        client_send(&c, &agent_stop_schema, 2, &(struct agent_stop){pid, graces[i]});
        client_expect(&c, &agent_process_schema, 2, &p);
        assert_int_equal(p.state, graces[i] == 0 ? PROCESS_KILLED : PROCESS_STOPPED);
        assert_false(is_alive(grandchild));
    }
    client_close(&c);
}

/* The leader is over, its background process is not: a stop ends that, and the end of the leader
 * stays what it was. */
static void test_stop_background(void **state)
{
    const struct sandbox *s = *state;
    struct client c = client_open(s->f);
    struct agent_process p;
    client_run(&c, s->f, "setsid sleep 100 > /dev/null 2>&1 & echo $!; exit 4", &p);
    assert_int_equal(p.exit_code, 4);
    pid_t background = printed_pid(&c, p.pid);
    assert_true(is_alive(background));
    client_send(&c, &agent_stop_schema, 2, &(struct agent_stop){p.pid, 10000});
    client_expect(&c, &agent_process_schema, 2, &p);
    assert_int_equal(p.state, PROCESS_EXITED);
    assert_int_equal(p.exit_code, 4);
    assert_false(is_alive(background));
    while (count_children(s, NULL) > 0)
        ;
    client_close(&c);
}

/* A background process that ends by itself takes its cgroup with it. */
static void test_background_ends(void **state)
{
    const struct sandbox *s = *state;
    struct client c = client_open(s->f);
    struct agent_process p;
    assert_int_equal(mkfifo(fixture_path(s->f, "go"), 0600), 0);
    client_run(&c, s->f, "cat go > /dev/null 2>&1 &", &p);
    struct agent_process other;
    client_run(&c, s->f, "echo > go", &other);
    while (count_children(s, NULL) > 0)
        ;
    client_close(&c);
}

int main(void)
{
    if (geteuid() != 0 || find_root() == NULL)
        return 77; /* skipped: needs a cgroup v2 tree to write to */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_own_cgroup, setup, teardown),
        cmocka_unit_test_setup_teardown(test_timeout_takes_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stop_takes_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stop_background, setup, teardown),
        cmocka_unit_test_setup_teardown(test_background_ends, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
