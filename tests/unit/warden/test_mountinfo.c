/* SPDX-License-Identifier: Apache-2.0 */

#include "warden/mountinfo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void parses_lines(void **state)
{
    static const struct {
        const char *line, *root, *target, *fstype, *source, *options;
    } rows[] = {
        {"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n", "/",
         "/sys/fs/cgroup", "tmpfs", "tmpfs", "rw,mode=755"},
        {"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:7 - ext3 /dev/root rw", "/mnt1",
         "/mnt2", "ext3", "/dev/root", "rw"},
        {"40 1 0:3 / /a\\040b\\134c rw - btrfs /dev/loop\\0110 rw", "/", "/a b\\c", "btrfs",
         "/dev/loop\t0", "rw"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char line[256];
        struct mount_line mount;
        strncpy(line, rows[i].line, sizeof(line) - 1);
        line[sizeof(line) - 1] = '\0';
        assert_true(mountinfo_parse(line, &mount));
        assert_string_equal(mount.root, rows[i].root);
        assert_string_equal(mount.target, rows[i].target);
        assert_string_equal(mount.fstype, rows[i].fstype);
        assert_string_equal(mount.source, rows[i].source);
        assert_string_equal(mount.options, rows[i].options);
    }
}

static void refuses_other_lines(void **state)
{
    static const char *const lines[] = {"",
                                        "\n",
                                        "31 23 0:28 / /sys rw",
                                        "1 2 3 4 5 6 7 8",
                                        "1 2 3 4 5 6 -",
                                        "1 2 3 4 5 6 - ext4 /dev/x"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char line[64] = {0};
        struct mount_line mount;
        strncpy(line, lines[i], sizeof(line) - 1);
        assert_false(mountinfo_parse(line, &mount));
    }
}

static void finds_whole_words(void **state)
{
    assert_true(option_listed("rw,cpu,cpuacct", "cpu"));
    assert_true(option_listed("rw,cpuacct,cpu", "cpu"));
    assert_true(option_listed("cpu", "cpu"));
    assert_false(option_listed("rw,cpuacct,cpuset", "cpu"));
    assert_false(option_listed("", "cpu"));
    assert_false(option_listed("rw,xcpu", "cpu"));
}

static int count(const struct mount_line *mount, void *arg)
{
    (*(int *)arg)++;
    return mount->target[0] == '/' ? 0 : 7;
}

static void reads_the_real_table(void **state)
{
    int mounts = 0;
    assert_int_equal(mountinfo_each(count, &mounts, NULL), 0);
    assert_true(mounts > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_lines),
        cmocka_unit_test(refuses_other_lines),
        cmocka_unit_test(finds_whole_words),
        cmocka_unit_test(reads_the_real_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
