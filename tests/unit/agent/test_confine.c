/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/confine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

/* A child's check: says which line it was by its exit status. */
#define REQUIRE(truth)                                                                             \
    do {                                                                                           \
        if (!(truth))                                                                              \
            _exit(__LINE__ & 0xff);                                                                \
    } while (0)

static void in_child(void (*fn)(void))
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        fn();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void *do_nothing(void *arg)
{
    return arg;
}

static bool refused(long result, int number)
{
    if (result == 0) /* a child that should not be */
        _exit(1);
    return result < 0 && errno == number;
}

static void try_processes(void)
{
    const struct confinement confinement = {.no_subprocess = true};
    pthread_t thread;
    void *answer;
    char arg;
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(confine(&confinement) == 0);
#ifdef SYS_fork
    REQUIRE(refused(syscall(SYS_fork), EPERM));
#endif
    REQUIRE(refused(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0), EPERM));
    REQUIRE(refused(syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, 0), EPERM));
    struct clone_args args = {.exit_signal = SIGCHLD};
    REQUIRE(refused(syscall(SYS_clone3, &args, sizeof(args)), ENOSYS));
    REQUIRE(fork() == -1 && errno == EPERM);
    REQUIRE(pthread_create(&thread, NULL, do_nothing, &arg) == 0);
    REQUIRE(pthread_join(thread, &answer) == 0 && answer == &arg);
    REQUIRE(getpid() == (pid_t)syscall(SYS_getpid));
}

static void processes_are_refused_and_threads_are_not(void **state)
{
    in_child(try_processes);
}

static void try_capabilities(void)
{
    const struct confinement confinement = {.no_capabilities = true};
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2], none[2] = {0};
    REQUIRE(confine(&confinement) == 0);
    REQUIRE(syscall(SYS_capget, &header, data) == 0);
    REQUIRE(memcmp(data, none, sizeof(data)) == 0);
}

static void capabilities_are_given_up(void **state)
{
    in_child(try_capabilities);
}

static void try_nothing(void)
{
    const struct confinement confinement = {0};
    REQUIRE(confine(&confinement) == 0);
    REQUIRE(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    REQUIRE(pid > 0 && waitpid(pid, NULL, 0) == pid);
}

static void without_rules_nothing_changes(void **state)
{
    in_child(try_nothing);
}

/* Without no_new_privs and CAP_SYS_ADMIN the kernel refuses, and so the command does not begin. */
static void try_unprivileged(void)
{
    const struct confinement strip = {.no_capabilities = true},
                             confinement = {.no_subprocess = true};
    REQUIRE(confine(&strip) == 0);
    REQUIRE(confine(&confinement) == -EACCES);
}

static void a_filter_that_cannot_be_had_is_an_error(void **state)
{
    in_child(try_unprivileged);
}

/* Through an agent that was told so: its commands, and not itself. */
static void commands_of_an_agent(void **state)
{
    struct fixture *f = fixture_start_ruled("s");
    struct client c = client_open(f);
    struct agent_process p;
    for (int i = 0; i < 2; i++) { /* the agent goes on making processes */
        client_run(&c, f, "echo one; echo $(echo two) three; echo four", &p);
        assert_int_not_equal(p.exit_code, 0);
        assert_memory_equal(p.stdout_data.data, "one\n", 4);
        client_run(&c, f, "x=5; echo $((x + 1))", &p);
        assert_int_equal(p.exit_code, 0);
        assert_memory_equal(p.stdout_data.data, "6\n", 2);
    }
    client_close(&c);
    fixture_stop(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_are_refused_and_threads_are_not),
        cmocka_unit_test(capabilities_are_given_up),
        cmocka_unit_test(without_rules_nothing_changes),
        cmocka_unit_test(a_filter_that_cannot_be_had_is_an_error),
        cmocka_unit_test(commands_of_an_agent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
