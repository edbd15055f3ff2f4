/* SPDX-License-Identifier: Apache-2.0 */

#include "audit/log.h"

#include <signal.h>
#include <sys/resource.h>

#include "fixture.h"

static void test_fresh(void **state)
{
    struct place p;
    struct findings found;
    place_make(&p);
    place_write(&p, "x", 10);
    audit_close(p.audit);
    p.audit = NULL;
    struct audit_summary summary = place_verify(&p, &found);
    assert_int_equal(found.count, 0);
    assert_int_equal(summary.lines, 13); /* its head, started, stopped */
    assert_int_equal(summary.last.seq, 13);
    place_open(&p); /* and it goes on */
    place_write(&p, "x", 1);
    summary = place_verify(&p, &found);
    assert_int_equal(found.count, 0);
    assert_int_equal(summary.last.seq, 15);
    assert_int_equal(summary.files, 1);
    place_remove(&p);
}

/* Killed at every byte of the last line: it is cut off, said so, and what was before is there. */
static void test_torn(void **state)
{
    struct place p;
    struct findings found;
    const struct audit_head none = {0};
    place_make(&p);
    place_write(&p, "x", 3);
    place_kill(&p);
    char *whole = strdup(file_read(&p, 1));
    size_t len = strlen(whole), last = len - 1;
    while (whole[last - 1] != '\n')
        last--;
    for (size_t cut = last + 1; cut < len; cut += 7) {
        char saved = whole[cut];
        whole[cut] = '\0';
        file_write(&p, 1, whole);
        whole[cut] = saved;
        assert_int_equal(audit_head_write(p.head_fd, &none, NULL), 0); /* no newer one was kept */
        place_open(&p);
        assert_int_equal(place_verify(&p, &found).last.seq, 6); /* 4, repaired, started */
        assert_int_equal(found.count, 0);
        assert_int_equal(found.notes, 1);
        place_kill(&p);
    }
    free(whole);
    place_open(&p);
    place_remove(&p);
}

/* A new file that has nothing yet, or half its first line. */
static void test_torn_rotation(void **state)
{
    static const char *const beginnings[] = {"", "{\"seq\":6,\"ti"};
    for (size_t i = 0; i < ARRAY_LEN(beginnings); i++) {
        struct place p;
        struct findings found;
        place_make(&p);
        place_write(&p, "x", 3);
        place_kill(&p);
        file_write(&p, 6, beginnings[i]);
        place_open(&p);
        place_write(&p, "x", 1);
        struct audit_summary summary = place_verify(&p, &found);
        assert_int_equal(found.count, 0);
        assert_int_equal(summary.files, 2);
        place_remove(&p);
    }
}

static void test_rotation(void **state)
{
    struct place p;
    struct findings found;
    place_make(&p);
    audit_close(p.audit);
    p.options.file_bytes = 4096;
    p.options.files = 3;
    place_open(&p);
    place_write(&p, "x", 200);
    struct audit_summary summary = place_verify(&p, &found);
    assert_int_equal(found.count, 0);
    assert_int_equal(summary.files, 3);
    assert_true(summary.first > 1);
    assert_int_equal(audit_counters_of(p.audit).files, 3);
    /* Older than it may be: all but the one that is written to. */
    audit_close(p.audit);
    p.options.keep_ms = 1;
    usleep(10 * 1000);
    struct timespec past[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct audit_files files;
    assert_int_equal(audit_files_list(p.dir_fd, &files, NULL), 0);
    for (size_t i = 0; i + 1 < files.count; i++) {
        char name[AUDIT_FILE_NAME_SIZE];
        audit_file_name(files.items[i].first, name);
        assert_int_equal(utimensat(p.dir_fd, name, past, 0), 0);
    }
    audit_files_release(&files);
    place_open(&p);
    summary = place_verify(&p, &found);
    assert_int_equal(found.count, 0);
    assert_true(summary.files <= 2);
    place_remove(&p);
}

/* The end was taken away while no server ran: told at the next start, and for ever after. */
static void test_truncated(void **state)
{
    struct place p;
    struct findings found;
    place_make(&p);
    place_write(&p, "x", 5);
    audit_close(p.audit);
    p.audit = NULL;
    char *text = file_read(&p, 1);
    for (int lines = 0; lines < 4; text++)
        lines += *text == '\n';
    *text = '\0';
    file_write(&p, 1, file_read(&p, 1)); /* as it was */
    text = file_read(&p, 1);
    char *at = text;
    for (int lines = 0; lines < 4; at++)
        lines += *at == '\n';
    *at = '\0';
    char *copy = strdup(text);
    file_write(&p, 1, copy);
    free(copy);
    place_verify(&p, &found);
    assert_int_equal(found.count, 1);
    assert_non_null(strstr(found.problems[0].text, "removed from its end"));
    place_open(&p);
    place_write(&p, "x", 1);
    audit_close(p.audit);
    p.audit = NULL;
    place_verify(&p, &found);
    assert_int_equal(found.count, 2); /* the gap, and the server's own line on it */
    assert_non_null(strstr(found.problems[0].text, "the lines 5 to 8 are missing"));
    place_open(&p);
    place_remove(&p);
}

/* So was the head, with or without the end: told at the next start, and for ever after. */
static void test_headless(void **state)
{
    struct place p;
    struct findings found;
    place_make(&p);
    place_write(&p, "x", 5);
    audit_close(p.audit);
    assert_int_equal(ftruncate(p.head_fd, 0), 0);
    place_open(&p);
    place_write(&p, "x", 1);
    for (int i = 0; i < 2; i++) {
        place_verify(&p, &found);
        assert_int_equal(found.count, 1);
        assert_non_null(strstr(found.problems[0].text, "the server found the log damaged"));
        audit_close(p.audit);
        place_open(&p);
    }
    place_remove(&p);
}

/* Killed before the first line was whole, or before a head was kept for it. */
static void test_killed_at_birth(void **state)
{
    static const char *const beginnings[] = {"", "{\"seq\":1,\"ti", NULL};
    const struct audit_head none = {0};
    for (size_t i = 0; i < ARRAY_LEN(beginnings); i++) {
        struct place p;
        struct findings found;
        place_make(&p);
        place_kill(&p);
        if (beginnings[i] != NULL)
            file_write(&p, 1, beginnings[i]);
        assert_int_equal(audit_head_write(p.head_fd, &none, NULL), 0);
        place_open(&p);
        place_verify(&p, &found);
        assert_int_equal(found.count, 0);
        place_remove(&p);
    }
}

/* A disk that is full: RLIMIT_FSIZE stands in for it. */
static void test_full(void **state)
{
    struct place p;
    struct findings found;
    struct rlimit was, little;
    struct error err;
    place_make(&p);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    little = (struct rlimit){.rlim_cur = strlen(file_read(&p, 1)) + 100, .rlim_max = was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    assert_int_equal(audit_admit(p.audit, &err), 0);
    uint64_t lost = 0;
    for (int i = 0; i < 20000; i++) { /* more than fit into the buffer */
        struct buf *line = audit_begin(p.audit, "x", 0);
        lost += line == NULL;
        if (line != NULL)
            audit_end(p.audit);
    }
    assert_int_equal(audit_flush(p.audit, &err), -1);
    assert_int_equal(err.code, ERROR_AUDIT_UNAVAILABLE);
    assert_true(lost > 0);
    assert_true(audit_counters_of(p.audit).failing);
    assert_int_equal(audit_counters_of(p.audit).lost, lost);
    assert_int_equal(audit_admit(p.audit, &err), -1);
    assert_int_equal(err.code, ERROR_AUDIT_UNAVAILABLE);
    /* There is room again: all of the buffer is written, and the rest is told of. */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(audit_admit(p.audit, &err), 0);
    place_write(&p, "x", 1);
    assert_false(audit_counters_of(p.audit).failing);
    audit_close(p.audit);
    p.audit = NULL;
    place_verify(&p, &found);
    assert_int_equal(found.count, 0);
    assert_in_range(found.notes, 1, 2); /* twice, when the last bytes let one more line in */
    place_open(&p);
    place_remove(&p);
}

/* Strangers get their share; what is beyond it is one line. */
static void test_spare(void **state)
{
    struct place p;
    struct findings found;
    place_make(&p);
    int64_t now = time_now_ms();
    int room = 0;
    while (room < 2 * AUDIT_SPARE_AT_ONCE && audit_spare(p.audit, now))
        room++;
    assert_in_range(room, AUDIT_SPARE_AT_ONCE, AUDIT_SPARE_AT_ONCE + 1);
    for (int i = 0; i < 9; i++)
        assert_false(audit_spare(p.audit, now));
    assert_true(audit_spare(p.audit, now + 1000));
    assert_int_equal(audit_counters_of(p.audit).skipped, 10);
    place_write(&p, "x", 1);
    assert_non_null(strstr(file_read(&p, 1), "\"event\":\"audit.skipped\",\"lines\":10,"));
    place_verify(&p, &found);
    assert_int_equal(found.count, 0);
    place_remove(&p);
}

static void test_too_long(void **state)
{
    struct place p;
    struct findings found;
    place_make(&p);
    char *text = malloc(AUDIT_LINE_MAX);
    memset(text, 'x', AUDIT_LINE_MAX);
    struct buf *line = audit_begin(p.audit, "x", 0);
    audit_add_text(line, "long", (struct slice){text, AUDIT_LINE_MAX}, AUDIT_LINE_MAX);
    audit_end(p.audit);
    free(text);
    assert_int_equal(audit_counters_of(p.audit).lost, 1);
    place_write(&p, "x", 1);
    place_verify(&p, &found);
    assert_int_equal(found.count, 0);
    assert_int_equal(found.notes, 1);
    place_remove(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fresh),           cmocka_unit_test(test_torn),
        cmocka_unit_test(test_rotation),        cmocka_unit_test(test_torn_rotation),
        cmocka_unit_test(test_truncated),       cmocka_unit_test(test_headless),
        cmocka_unit_test(test_killed_at_birth), cmocka_unit_test(test_full),
        cmocka_unit_test(test_spare),           cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
