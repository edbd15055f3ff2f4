/* SPDX-License-Identifier: Apache-2.0 */

/* Memory bandwidth, on a folder that looks like resctrl: most machines have no hardware for it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/files.h"
#include "warden/resctrl.h"

static void write_file(const char *root, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void make_dir(const char *root, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void test_domains(void **state)
{
    static const struct {
        const char *text;
        unsigned count, last;
    } rows[] = {
        {"    L3:0=7ff;1=7ff\n    MB:0=100;1=100\n", 2, 1},
        {"MB:0=100\nL3:0=7ff\n", 1, 0},
        {"MB:0=100;8=100;16=50", 3, 16},
        {"L3:0=7ff\n", 0, 0},
        {"", 0, 0},
        {"MB:\n", 0, 0},
        {"MB:x=1;2=3\n", 0, 0},
        {"SMBA:0=100\n", 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        unsigned domains[RESCTRL_DOMAINS_MAX];
        unsigned count = resctrl_parse_domains(rows[i].text, domains);
        assert_int_equal(count, rows[i].count);
        if (count > 0)
            assert_int_equal(domains[count - 1], rows[i].last);
    }
}

static void test_groups(void **state)
{
    char root[] = "/tmp/cella-resctrl-XXXXXX", text[256];
    struct resctrl resctrl;
    struct error err;
    assert_non_null(mkdtemp(root));
    make_dir(root, "info");
    make_dir(root, "info/MB");
    write_file(root, "info/MB/min_bandwidth", "10\n");
    write_file(root, "info/MB/bandwidth_gran", "10\n");
    write_file(root, "schemata", "    MB:0=100;1=100\n");
    resctrl_open(&resctrl, root, "abcdefgh");
    assert_true(resctrl.fd >= 0);
    assert_non_null(strstr(resctrl.why, "steps of 10"));

    assert_int_equal(resctrl_limit(&resctrl, "box", 0, 0, &err), 0); /* no limit, no group */
    assert_int_equal(faccessat(resctrl.fd, "cella-abcdefgh-box", F_OK, 0), -1);

    make_dir(root, "cella-abcdefgh-box");
    write_file(root, "cella-abcdefgh-box/schemata", "");
    write_file(root, "cella-abcdefgh-box/tasks", "");
    assert_int_equal(resctrl_limit(&resctrl, "box", 33, 4711, &err), 0);
    file_read_at(resctrl.fd, "cella-abcdefgh-box/schemata", text, sizeof(text), NULL);
    assert_string_equal(text, "MB:0=40;1=40\n"); /* up to the next step */
    file_read_at(resctrl.fd, "cella-abcdefgh-box/tasks", text, sizeof(text), NULL);
    assert_string_equal(text, "4711");
    assert_int_equal(resctrl_limit(&resctrl, "box", 1, 0, &err), 0);
    file_read_at(resctrl.fd, "cella-abcdefgh-box/schemata", text, sizeof(text), NULL);
    assert_memory_equal(text, "MB:0=10;1=10\n", 13);
    resctrl_close(&resctrl);
    assert_int_equal(tree_remove_at(AT_FDCWD, root, &err), 0);
}

static void test_without(void **state)
{
    struct resctrl resctrl;
    struct error err;
    resctrl_open(&resctrl, "/nonexistent/resctrl", "abcdefgh");
    assert_int_equal(resctrl.fd, -1);
    assert_non_null(strstr(resctrl.why, "not enforced"));
    assert_int_equal(resctrl_limit(&resctrl, "box", 50, 1, &err), 0);
    resctrl_remove(&resctrl, "box");
    resctrl_close(&resctrl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_domains),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
