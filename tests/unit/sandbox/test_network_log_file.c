/* SPDX-License-Identifier: Apache-2.0 */

/* Logs of networks on disk: what is kept, what gives way, what was damaged; and what can be asked
 * for. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "network/policy.h"
#include "sandbox/network_log.h"
#include "sandbox/network_log_file.h"

struct place {
    char path[64];
    int data, dir;
    struct network_log_record out[EGRESS_LOG_MAX];
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    snprintf(p->path, sizeof(p->path), "/tmp/cella-network-log-XXXXXX");
    assert_non_null(mkdtemp(p->path));
    p->data = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(p->data, "db", 0700), 0);
    assert_int_equal(network_log_dir_open(p->data, &p->dir, NULL), 0);
    *state = p;
    return 0;
}

static bool none(void *ctx, const char *id)
{
    return false;
}

static int teardown(void **state)
{
    struct place *p = *state;
    network_log_dir_sweep(p->dir, none, NULL);
    unlinkat(p->dir, ".position", 0);
    close(p->dir);
    assert_int_equal(unlinkat(p->data, "db/network", AT_REMOVEDIR), 0);
    assert_int_equal(unlinkat(p->data, "db", AT_REMOVEDIR), 0);
    close(p->data);
    assert_int_equal(rmdir(p->path), 0);
    free(p);
    return 0;
}

static void put(struct place *p, const char *id, uint64_t sequence, const char *name)
{
    struct network_log_record record = {.sequence = sequence, .count = 1};
    struct error err;
    snprintf(record.name, sizeof(record.name), "%s", name);
    assert_int_equal(network_log_file_write(p->dir, id, &record, 1, &err), 0);
}

static off_t size_of(const struct place *p, const char *id)
{
    struct stat st;
    assert_int_equal(fstatat(p->dir, id, &st, 0), 0);
    return st.st_size;
}

static void test_kept(void **state)
{
    struct place *p = *state;
    assert_int_equal(network_log_file_read(p->dir, "box", p->out), 0);
    assert_int_equal(network_log_file_last(p->dir, "box"), 0);
    put(p, "box", 2, "b.example");
    put(p, "box", 1, "a.example");
    put(p, "other", 9, "c.example");
    assert_int_equal(network_log_file_read(p->dir, "box", p->out), 2);
    assert_string_equal(p->out[0].name, "a.example");
    assert_string_equal(p->out[1].name, "b.example");
    put(p, "box", 1, "changed.example"); /* in its place */
    assert_int_equal(network_log_file_read(p->dir, "box", p->out), 2);
    assert_string_equal(p->out[0].name, "changed.example");
    assert_int_equal(network_log_file_last(p->dir, "box"), 2);
    network_log_file_remove(p->dir, "box");
    assert_int_equal(network_log_file_read(p->dir, "box", p->out), 0);
    assert_int_equal(network_log_file_read(p->dir, "other", p->out), 1);
}

static void test_bounded(void **state)
{
    struct place *p = *state;
    for (uint64_t i = 1; i <= EGRESS_LOG_MAX; i++)
        put(p, "box", i, "x");
    off_t full = size_of(p, "box");
    for (uint64_t i = 1; i <= EGRESS_LOG_MAX + 5; i++)
        put(p, "box", EGRESS_LOG_MAX + i, "y");
    assert_int_equal(size_of(p, "box"), full);
    assert_int_equal(network_log_file_read(p->dir, "box", p->out), EGRESS_LOG_MAX);
    assert_int_equal(p->out[0].sequence, EGRESS_LOG_MAX + 6);
    assert_int_equal(p->out[EGRESS_LOG_MAX - 1].sequence, 2 * EGRESS_LOG_MAX + 5);
}

static void test_damage(void **state)
{
    struct place *p = *state;
    put(p, "box", 1, "a.example");
    put(p, "box", 2, "b.example");
    int fd = openat(p->dir, "box", O_RDWR | O_CLOEXEC);
    off_t second = 64 + 2 * (off_t)sizeof(struct network_log_record);
    assert_int_equal(pwrite(fd, "\xff", 1, second + 100), 1);
    assert_int_equal(network_log_file_read(p->dir, "box", p->out), 1);
    assert_string_equal(p->out[0].name, "a.example");
    assert_int_equal(ftruncate(fd, second + 10), 0);
    assert_int_equal(network_log_file_read(p->dir, "box", p->out), 1);
    assert_int_equal(pwrite(fd, "nonsense", 8, 0), 8);
    assert_int_equal(network_log_file_read(p->dir, "box", p->out), 0);
    close(fd);
    put(p, "box", 3, "c.example"); /* it begins anew */
    assert_int_equal(network_log_file_read(p->dir, "box", p->out), 1);
}

static bool is_box(void *ctx, const char *id)
{
    ++*(int *)ctx;
    return strcmp(id, "box") == 0;
}

static void test_sweep_and_position(void **state)
{
    struct place *p = *state;
    struct error err;
    int seen = 0;
    const struct network_log_position position = {.egress = 7, .change = 1234};
    put(p, "box", 1, "a.example");
    put(p, "gone", 1, "a.example");
    assert_int_equal(network_log_position_read(p->dir).egress, 0);
    assert_int_equal(network_log_position_write(p->dir, &position, &err), 0);
    network_log_dir_sweep(p->dir, is_box, &seen);
    assert_int_equal(seen, 2);
    assert_int_equal(network_log_file_read(p->dir, "box", p->out), 1);
    assert_int_equal(network_log_file_read(p->dir, "gone", p->out), 0);
    assert_int_equal(network_log_position_read(p->dir).change, 1234);
}

static void test_verdicts(void **state)
{
    uint64_t verdicts;
    struct error err;
    assert_int_equal(network_log_verdicts("allowed", &verdicts, &err), 0);
    assert_int_equal(verdicts, 1 << NET_ALLOWED);
    assert_int_equal(network_log_verdicts("REFUSED_QUIC", &verdicts, &err), 0);
    assert_int_equal(verdicts, 1 << NET_REFUSED_QUIC);
    assert_int_equal(network_log_verdicts("refused", &verdicts, &err), 0);
    assert_true(verdicts >> NET_REFUSED_LIMIT & 1);
    assert_false(verdicts >> NET_FAILED_LOOKUP & 1);
    assert_int_equal(network_log_verdicts("failed", &verdicts, &err), 0);
    assert_true(verdicts >> NET_FAILED_LOOKUP & 1);
    static const char *const bad[] = {"", "REFUSED", "refused ", "REFUSED_", "x"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(network_log_verdicts(bad[i], &verdicts, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sweep_and_position, setup, teardown),
        cmocka_unit_test(test_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
