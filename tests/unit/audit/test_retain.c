/* SPDX-License-Identifier: Apache-2.0 */

/* A workspace that floods the log rotates its own lines away, and nobody else's. */

#include "audit/query.h"
#include "fixture.h"

static const struct audit_options small = {
    .file_bytes = 4096, .files = 3, .keep_ms = INT64_C(1000) * 3600 * 24};

static void line_of(struct place *p, const char *workspace, int number)
{
    struct buf *line = audit_begin(p->audit, "command", time_now_ms());
    assert_non_null(line);
    audit_add_text(line, "workspace", slice_of(workspace), 64);
    audit_add_number(line, "n", number);
    audit_add_text(line, "command", slice_of("text, \"workspace\":\"victim\", that says nothing"),
                   100);
    audit_end(p->audit);
}

static void flood(struct place *p, const char *workspace, int times)
{
    for (int i = 0; i < times; i++)
        line_of(p, workspace, i);
    assert_int_equal(audit_flush(p->audit, NULL), 0);
}

static uint64_t lines_of(struct place *p, const char *workspace, const char *event)
{
    struct audit_query query = {.workspace = workspace, .event = event, .limit = 100000};
    struct audit_matches found;
    struct error err;
    _cleanup_buf_ struct buf lines = BUF_INIT(64 << 20);
    assert_int_equal(audit_find(p->dir_fd, &query, &lines, &found, &err), 0);
    return found.count;
}

static void clear_kept(struct place *p)
{
    struct audit_files kept;
    char name[AUDIT_FILE_NAME_SIZE];
    assert_int_equal(audit_kept_list(p->dir_fd, &kept, NULL), 0);
    for (size_t i = 0; i < kept.count; i++) {
        audit_kept_name(kept.items[i].first, name);
        unlinkat(p->dir_fd, name, 0);
    }
    audit_files_release(&kept);
}

static uint64_t quota_of(const void *ctx, const char *workspace)
{
    return *(const uint64_t *)ctx;
}

static void make(struct place *p, const uint64_t *quota)
{
    place_make(p);
    audit_close(p->audit);
    p->options = small;
    place_open(p);
    audit_set_quota(p->audit, quota_of, quota);
}

static void test_a_flood_takes_its_own(void **state)
{
    struct place p;
    struct findings found;
    const uint64_t quota = 2048;
    make(&p, &quota);
    for (int i = 0; i < 5; i++)
        line_of(&p, "victim", i);
    flood(&p, "flood", 120);
    assert_int_equal(lines_of(&p, "victim", "command"), 5);
    line_of(&p, "victim", 5);
    flood(&p, "flood", 120);
    assert_int_equal(lines_of(&p, "victim", "command"), 6);
    assert_true(audit_retained(p.audit, "victim") > 0);
    assert_true(audit_retained(p.audit, "flood") <= quota);
    /* What is gone is counted: all lines are there, or were told of. */
    uint64_t there = lines_of(&p, "flood", "command");
    assert_true(there < 240 && lines_of(&p, "flood", "audit.left_out") > 0);
    struct audit_summary summary = place_verify(&p, &found);
    assert_int_equal(found.count, 0);
    assert_true(summary.first > 1);
    /* The next server knows what is retained. */
    uint64_t before = audit_retained(p.audit, "victim");
    audit_close(p.audit);
    place_open(&p);
    assert_int_equal(audit_retained(p.audit, "victim"), before);
    clear_kept(&p);
    place_remove(&p);
}

/* In all, retained lines take no more room than the files that are kept. */
static void test_there_is_a_bound(void **state)
{
    struct place p;
    const uint64_t none = 0;
    make(&p, &none);
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%d", i);
        flood(&p, name, 30);
    }
    uint64_t bytes = 0;
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%d", i);
        bytes += audit_retained(p.audit, name);
    }
    assert_true(bytes > small.file_bytes && bytes <= small.file_bytes * small.files);
    clear_kept(&p);
    place_remove(&p);
}

static void test_tampering_is_found(void **state)
{
    struct place p;
    struct findings found;
    struct audit_files kept;
    char name[AUDIT_FILE_NAME_SIZE], text[64], before;
    const uint64_t quota = 2048;
    make(&p, &quota);
    line_of(&p, "victim", 1);
    flood(&p, "flood", 90);
    assert_int_equal(audit_kept_list(p.dir_fd, &kept, NULL), 0);
    assert_true(kept.count > 1);
    audit_kept_name(kept.items[0].first, name);
    int fd = openat(p.dir_fd, name, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &before, 1, 30), 1);
    assert_int_equal(pwrite(fd, "#", 1, 30), 1);
    place_verify(&p, &found);
    assert_int_equal(found.count, 1);
    assert_int_equal(pwrite(fd, &before, 1, 30), 1);
    close(fd);
    place_verify(&p, &found);
    assert_int_equal(found.count, 0);
    /* Taken away, and put in. */
    snprintf(text, sizeof(text), "%s.away", name);
    assert_int_equal(renameat(p.dir_fd, name, p.dir_fd, text), 0);
    place_verify(&p, &found);
    assert_int_equal(found.count, 1);
    assert_int_equal(renameat(p.dir_fd, text, p.dir_fd, name), 0);
    audit_kept_name(kept.items[0].first + 1, text);
    fd = openat(p.dir_fd, text, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    close(fd);
    place_verify(&p, &found);
    assert_int_equal(found.count, 1);
    audit_files_release(&kept);
    clear_kept(&p);
    place_remove(&p);
}

/* Retained lines go when they are too old, and a line tells of that. */
static void test_age(void **state)
{
    struct place p;
    struct findings found;
    struct audit_files kept;
    const uint64_t quota = 2048;
    make(&p, &quota);
    line_of(&p, "victim", 1);
    flood(&p, "flood", 90);
    assert_int_equal(audit_kept_list(p.dir_fd, &kept, NULL), 0);
    struct timespec past[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    for (size_t i = 0; i < kept.count; i++) {
        char name[AUDIT_FILE_NAME_SIZE];
        audit_kept_name(kept.items[i].first, name);
        assert_int_equal(utimensat(p.dir_fd, name, past, 0), 0);
    }
    audit_files_release(&kept);
    audit_close(p.audit);
    place_open(&p);
    assert_int_equal(lines_of(&p, "victim", "command"), 0);
    assert_int_equal(audit_retained(p.audit, "victim"), 0);
    place_verify(&p, &found);
    assert_int_equal(found.count, 0);
    clear_kept(&p);
    place_remove(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_flood_takes_its_own),
        cmocka_unit_test(test_there_is_a_bound),
        cmocka_unit_test(test_tampering_is_found),
        cmocka_unit_test(test_age),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
