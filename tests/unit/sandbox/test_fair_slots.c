/* SPDX-License-Identifier: Apache-2.0 */

/* Slots go to workspaces in turn, and a git that takes too long is ended with what it started. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/stat.h>

#include "history_place.h"
#include "sandbox/fair_slots.h"

struct user {
    struct fair_slots *slots;
    const char *workspace;
    char *order; /* of those that got a slot */
    bool done;
    int rc;
    struct error err;
    struct co *co;
};

static void take(void *arg)
{
    struct user *u = arg;
    u->rc = fair_slots_take(u->slots, u->workspace, -1, &u->err);
    if (u->rc == 0)
        u->order[strlen(u->order)] = u->workspace[0];
    u->done = true;
}

static void start(struct place *p, struct user *u, struct fair_slots *slots, const char *workspace,
                  char *order)
{
    struct error err;
    *u = (struct user){.slots = slots, .workspace = workspace, .order = order};
    assert_int_equal(co_spawn(p->loop, take, u, &u->co, &err), 0);
}

static void turn(struct place *p)
{
    struct error err;
    for (int i = 0; i < 4; i++)
        assert_int_equal(co_sleep(p->loop, 0, &err), 0);
}

/* "a" asks for many before anybody else comes: it has its share, and the others are next. */
static void slots_in_turn(struct place *p)
{
    struct fair_slots slots;
    struct user users[12];
    char order[64] = "";
    fair_slots_init(&slots, p->loop, "things", 3, 2, 4);
    for (int i = 0; i < 6; i++)
        start(p, &users[i], &slots, "a", order);
    assert_string_equal(order, "aa"); /* two, though there are three */
    start(p, &users[6], &slots, "a", order);
    assert_true(users[6].done && users[6].rc == -1);
    assert_int_equal(users[6].err.code, ERROR_LIMIT_EXCEEDED);
    assert_non_null(strstr(users[6].err.message, "4 things of the workspace \"a\""));
    start(p, &users[7], &slots, "b", order);
    assert_string_equal(order, "aab");
    start(p, &users[8], &slots, "b", order);
    start(p, &users[9], &slots, "c", order);
    fair_slots_give(&slots, "a");
    turn(p);
    fair_slots_give(&slots, "a");
    turn(p);
    fair_slots_give(&slots, "b");
    turn(p);
    assert_string_equal(order, "aabcab"); /* whoever was served longest ago */
    /* One that is cancelled leaves no gap. */
    co_cancel(users[3].co);
    turn(p);
    assert_true(users[3].done && users[3].rc == -1);
    static const char *const names[] = {"c", "b", "a", "a", "a"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        fair_slots_give(&slots, names[i]);
        turn(p);
    }
    assert_string_equal(order, "aabcabaa");
    assert_int_equal(slots.taken, 0);
    assert_null(slots.users);
    fair_slots_release(&slots);
}

static void test_slots_in_turn(void **state)
{
    on_coroutine(slots_in_turn);
}

static void slots_with_patience(struct place *p)
{
    struct fair_slots slots;
    struct error err = {0};
    fair_slots_init(&slots, p->loop, "things", 1, 1, 4);
    assert_int_equal(fair_slots_take(&slots, "a", -1, &err), 0);
    assert_int_equal(fair_slots_take(&slots, "a", 1, &err), -1);
    assert_int_equal(err.code, ERROR_TIMEOUT);
    fair_slots_force(&slots, "b");
    fair_slots_give(&slots, "b");
    fair_slots_give(&slots, "a");
    assert_null(slots.users);
}

static void test_slots_with_patience(void **state)
{
    on_coroutine(slots_with_patience);
}

/* A program in git's place that starts another, and then does what `then` says. */
static void make_git(struct place *p, const char *then)
{
    char path[128], text[512];
    snprintf(path, sizeof(path), "%s/git", p->path);
    int len =
        snprintf(text, sizeof(text),
                 "#!/bin/sh\nsleep 600 & echo $! > %s/child\nread line || :\n%s\n", p->path, then);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    assert_true(fd >= 0 && write(fd, text, (size_t)len) == len);
    close(fd);
    snprintf(p->git.path, sizeof(p->git.path), "%s", path);
    p->git.unconfined = true;
}

static void git_deadline(struct place *p)
{
    static const char *const slow[] = {"wait", "while :; do echo word; done", "exec >&-; wait"};
    static const char *const argv[] = {"log", NULL};
    for (size_t i = 0; i < ARRAY_LEN(slow); i++) {
        char path[128], pid[16] = "";
        struct error err = {0};
        make_git(p, slow[i]);
        p->git.deadline_ms = 300;
        struct git git = {0};
        assert_int_equal(git_start(&p->git, p->fd, argv, &git, &err), 0);
        assert_int_equal(git_close_input(&git, &err), 0);
        assert_int_equal(git_finish(&git, &err), -1);
        git_end(&git);
        assert_int_equal(err.code, ERROR_TIMEOUT);
        assert_non_null(strstr(err.message, "git was ended"));
        /* What it had started is gone, or a zombie of somebody's. */
        snprintf(path, sizeof(path), "%s/child", p->path);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0 && read(fd, pid, sizeof(pid) - 1) > 0);
        close(fd);
        for (int tries = 0; tries < 1000; tries++) {
            char stat[256] = "";
            snprintf(path, sizeof(path), "/proc/%ld/stat", strtol(pid, NULL, 10));
            fd = open(path, O_RDONLY | O_CLOEXEC);
            if (fd < 0)
                break;
            assert_true(read(fd, stat, sizeof(stat) - 1) >= 0);
            close(fd);
            if (strstr(stat, ") Z") != NULL)
                break;
            assert_int_not_equal(tries, 999);
            co_sleep(p->loop, 10, NULL);
        }
    }
}

static void test_git_deadline(void **state)
{
    on_coroutine(git_deadline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_in_turn),
        cmocka_unit_test(test_slots_with_patience),
        cmocka_unit_test(test_git_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
