/* SPDX-License-Identifier: Apache-2.0 */

/* passwd and group, sane and not. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/users.h"
#include "base/cleanup.h"

struct etc {
    char dir[64];
    char passwd[96];
    char group[96];
};

static void put(const char *path, const char *text, size_t len)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
                                 "# a comment\n"
                                 "broken line\n"
                                 "few:x:5:5\n"
                                 "bad:x:abc:5::/:/bin/sh\n"
                                 "huge:x:4294967295:5::/:/bin/sh\n"
                                 "nul:x:77:77::/ho\0me:/bin/sh\n"
                                 "user:x:1000:1001:,,,:/home/user:\n"
                                 ":x:1003:1003::/:/bin/sh\n"
                                 "last:x:1002:1002::/home/last:/bin/zsh";
    static const char group[] = "root:x:0:\nuser:x:1001:\nsudo:x:27:last,user\nno:x:28:users\n"
                                "docker:x:29:user,last\nown:x:1001:user\nbad:x:1\n";
    struct etc *etc = calloc(1, sizeof(*etc));
    snprintf(etc->dir, sizeof(etc->dir), "/tmp/cella-users-test-XXXXXX");
    assert_non_null(mkdtemp(etc->dir));
    snprintf(etc->passwd, sizeof(etc->passwd), "%s/passwd", etc->dir);
    snprintf(etc->group, sizeof(etc->group), "%s/group", etc->dir);
    put(etc->passwd, passwd, sizeof(passwd) - 1);
    put(etc->group, group, sizeof(group) - 1);
    *state = etc;
    return 0;
}

static int teardown(void **state)
{
    struct etc *etc = *state;
    unlink(etc->passwd);
    unlink(etc->group);
    rmdir(etc->dir);
    free(etc);
    return 0;
}

static void test_find(void **state)
{
    static const struct {
        const char *who;
        const char *name; /* NULL: not found */
        unsigned uid, gid;
        const char *home, *shell;
    } rows[] = {
        {"root", "root", 0, 0, "/root", "/bin/bash"},
        {"0", "root", 0, 0, "/root", "/bin/bash"},
        {"user", "user", 1000, 1001, "/home/user", "/bin/sh"},
        {"1000", "user", 1000, 1001, "/home/user", "/bin/sh"},
        {"last", "last", 1002, 1002, "/home/last", "/bin/zsh"},
        {"nul", "nul", 77, 77, "/", "/bin/sh"},
        {"4242", "4242", 4242, 4242, "/", "/bin/sh"},
        {"few", NULL, 0, 0, NULL, NULL},
        {"bad", NULL, 0, 0, NULL, NULL},
        {"huge", NULL, 0, 0, NULL, NULL},
        {"4294967295", NULL, 0, 0, NULL, NULL},
        {"99999999999", NULL, 0, 0, NULL, NULL},
        {"-1", NULL, 0, 0, NULL, NULL},
        {"use", NULL, 0, 0, NULL, NULL},
        {"nobody-here", NULL, 0, 0, NULL, NULL},
    };
    const struct etc *etc = *state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct user user;
        struct error err;
        int found = users_find(etc->dir, rows[i].who, &user, &err);
        if (rows[i].name == NULL) {
            if (found == 0)
                fail_msg("%s was found", rows[i].who);
            assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
            continue;
        }
        assert_int_equal(found, 0);
        assert_string_equal(user.name, rows[i].name);
        assert_int_equal(user.uid, rows[i].uid);
        assert_int_equal(user.gid, rows[i].gid);
        assert_string_equal(user.home, rows[i].home);
        assert_string_equal(user.shell, rows[i].shell);
    }
}

static void test_groups(void **state)
{
    const struct etc *etc = *state;
    struct user user;
    assert_int_equal(users_find(etc->dir, "user", &user, NULL), 0);
    assert_int_equal(user.group_count, 3);
    assert_int_equal(user.groups[0], 1001);
    assert_int_equal(user.groups[1], 27);
    assert_int_equal(user.groups[2], 29);
}

static void test_no_files(void **state)
{
    struct user user;
    assert_int_equal(users_find("/nonexistent", "root", &user, NULL), 0);
    assert_int_equal(user.uid, 0);
    assert_string_equal(user.home, "/");
    assert_int_equal(users_find("/nonexistent", "user", &user, NULL), -1);
}

/* A fifo in its place must not hang whoever looks. */
static void test_fifo(void **state)
{
    const struct etc *etc = *state;
    struct user user;
    assert_int_equal(unlink(etc->passwd), 0);
    assert_int_equal(mkfifo(etc->passwd, 0600), 0);
    assert_int_equal(users_find(etc->dir, "user", &user, NULL), -1);
}

static void test_names(void **state)
{
    const struct etc *etc = *state;
    struct id_names names = {.file = etc->passwd};
    for (int round = 0; round < 3; round++) {
        assert_string_equal(id_names_get(&names, 0), "root");
        assert_string_equal(id_names_get(&names, 1000), "user");
        assert_string_equal(id_names_get(&names, 1002), "last");
        assert_string_equal(id_names_get(&names, 1003), "1003");
        for (unsigned id = 5000; id < 5020; id++) {
            char digits[16];
            snprintf(digits, sizeof(digits), "%u", id);
            assert_string_equal(id_names_get(&names, id), digits);
        }
    }
    struct id_names groups = {.file = etc->group};
    assert_string_equal(id_names_get(&groups, 29), "docker");
}

/* What was found once is given again only while the files are the same, and for the same name. */
static void test_find_again(void **state)
{
    const struct etc *etc = *state;
    struct user_memo memo = {0};
    struct user user;
    struct error err;
    assert_int_equal(users_find_again(etc->dir, "user", &memo, &user, &err), 0);
    assert_string_equal(user.home, "/home/user");
    assert_int_equal(users_find_again(etc->dir, "user", &memo, &user, &err), 0);
    assert_int_equal(user.uid, 1000);
    assert_int_equal(users_find_again(etc->dir, "last", &memo, &user, &err), 0);
    assert_int_equal(user.uid, 1002);

    static const char moved[] = "last:x:1002:1002::/elsewhere:/bin/zsh\n";
    put(etc->passwd, moved, sizeof(moved) - 1);
    assert_int_equal(users_find_again(etc->dir, "last", &memo, &user, &err), 0);
    assert_string_equal(user.home, "/elsewhere");
    assert_int_equal(users_find_again(etc->dir, "user", &memo, &user, &err), -1);
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    assert_int_equal(unlink(etc->passwd), 0);
    assert_int_equal(users_find_again(etc->dir, "last", &memo, &user, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_find, setup, teardown),
        cmocka_unit_test_setup_teardown(test_groups, setup, teardown),
        cmocka_unit_test(test_no_files),
        cmocka_unit_test_setup_teardown(test_fifo, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_find_again, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
