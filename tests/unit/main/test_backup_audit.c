/* SPDX-License-Identifier: Apache-2.0 */

/* The copy of an audit log: it verifies, wherever the log was when it was made. */

#include "main/backup_audit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "audit/log.h"
#include "audit/verify.h"
#include "base/layout.h"
#include "base/timetext.h"
#include "folder.h"
#include "main/tree.h"

struct data {
    int audit_fd, head_fd;
    struct audit *audit;
};

static void open_log(struct folder *f, struct data *d, const char *options_text)
{
    struct error err = {0};
    struct audit_options options;
    close(sub_folder(f, LAYOUT_DB_DIR));
    close(sub_folder(f, "stage"));
    close(sub_folder(f, "stage/" LAYOUT_DB_DIR));
    d->audit_fd = sub_folder(f, LAYOUT_AUDIT);
    d->head_fd = openat(f->fd, LAYOUT_AUDIT_HEAD, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(d->head_fd >= 0);
    assert_int_equal(audit_options_parse(options_text, &options, &err), 0);
    if (audit_open(NULL, d->audit_fd, d->head_fd, &options, &d->audit, &err) < 0)
        fail_msg("%s", err.message);
}

static void write_lines(struct data *d, int count)
{
    for (int i = 0; i < count; i++) {
        struct buf *line = audit_begin(d->audit, "test", time_now_ms());
        assert_non_null(line);
        audit_add_number(line, "n", i);
        audit_end(d->audit);
        if (i % 50 == 0)
            assert_int_equal(audit_flush(d->audit, NULL), 0);
    }
    assert_int_equal(audit_flush(d->audit, NULL), 0);
}

static void close_log(struct data *d)
{
    audit_close(d->audit);
    close(d->audit_fd);
    close(d->head_fd);
}

static int stage_of(struct folder *f)
{
    int fd = openat(f->fd, "stage", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void report(void *ctx, const struct audit_finding *finding)
{
    if (!finding->is_note)
        print_error("%s:%d: %s\n", finding->file, (int)finding->line, finding->text);
}

/* Its number of lines, of a copy that is whole and has the head that was copied with it. */
static uint64_t verify(int stage)
{
    struct audit_summary summary;
    struct audit_head head;
    struct error err = {0};
    _cleanup_fd_ int dir = openat(stage, LAYOUT_AUDIT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int head_fd = openat(stage, LAYOUT_AUDIT_HEAD, O_RDONLY | O_CLOEXEC);
    assert_true(dir >= 0 && head_fd >= 0);
    assert_int_equal(audit_head_read(head_fd, &head, &err), 0);
    if (audit_verify(dir, &head, 1, report, NULL, &summary, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(summary.problems, 0);
    return summary.lines;
}

static void a_log_of_several_files(void **state)
{
    struct folder *f = *state;
    struct data d;
    struct error err = {0};
    struct audit_files files;
    open_log(f, &d, "size=64Ki");
    write_lines(&d, 2000);
    _cleanup_fd_ int stage = stage_of(f);
    if (backup_audit(f->fd, stage, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(verify(stage) >= 2000);
    assert_int_equal(audit_files_list(d.audit_fd, &files, &err), 0);
    assert_true(files.count > 1);
    /* No file of the backup is one that the process which faces the network can write to. */
    char name[AUDIT_FILE_NAME_SIZE], path[128];
    struct stat st;
    for (size_t i = 0; i < files.count; i++) {
        audit_file_name(files.items[i].first, name);
        snprintf(path, sizeof(path), "stage/%s/%s", LAYOUT_AUDIT, name);
        assert_int_equal(fstatat(f->fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(st.st_nlink, 1);
    }
    audit_files_release(&files);
    write_lines(&d, 100); /* what comes later changes nothing about it */
    assert_true(verify(stage) >= 2000);
    close_log(&d);
}

static void half_a_line(void **state)
{
    struct folder *f = *state;
    struct data d;
    struct error err = {0};
    char name[AUDIT_FILE_NAME_SIZE], text[6000];
    open_log(f, &d, "");
    write_lines(&d, 10);
    audit_file_name(1, name);
    _cleanup_fd_ int fd = openat(d.audit_fd, name, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(fd >= 0);
    memset(text, 'x', sizeof(text)); /* longer than what is read at a time */
    assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
    _cleanup_fd_ int stage = stage_of(f);
    if (backup_audit(f->fd, stage, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(verify(stage) >= 10);
    close_log(&d);
}

struct writer {
    struct data *d;
    atomic_bool stop;
};

static void *write_on(void *arg)
{
    struct writer *w = arg;
    while (!atomic_load(&w->stop)) {
        struct buf *line = audit_begin(w->d->audit, "test", time_now_ms());
        audit_add_number(line, "n", 1);
        audit_end(w->d->audit);
        audit_flush(w->d->audit, NULL);
        usleep(20);
    }
    return NULL;
}

/* Files come and go while they are copied: what is copied is whole, or it is said that it is not.
 */
static void a_log_that_rotates(void **state)
{
    enum { TIMES = 40 };
    struct folder *f = *state;
    struct data d;
    struct writer writer = {.d = &d};
    struct error err = {0};
    pthread_t thread;
    int whole = 0;
    open_log(f, &d, "size=64Ki,files=2");
    write_lines(&d, 2000);
    _cleanup_fd_ int stage = stage_of(f);
    assert_int_equal(pthread_create(&thread, NULL, write_on, &writer), 0);
    for (int i = 0; i < TIMES; i++) {
        if (backup_audit(f->fd, stage, &err) == 0) {
            whole++;
            verify(stage);
        } else {
            assert_int_equal(err.code, ERROR_FILE_NOT_FOUND);
        }
        assert_int_equal(tree_remove(stage, LAYOUT_AUDIT, &err), 0);
    }
    atomic_store(&writer.stop, true);
    pthread_join(thread, NULL);
    assert_true(whole > 0);
    close_log(&d);
}

static void no_log(void **state)
{
    struct folder *f = *state;
    struct error err = {0};
    close(sub_folder(f, "stage"));
    _cleanup_fd_ int stage = stage_of(f);
    assert_int_equal(backup_audit(f->fd, stage, &err), 0);
    assert_false(is_there(f, "stage/" LAYOUT_AUDIT));
}

/* The folder belongs to the process that faces the network; nothing is followed out of it. */
static void links(void **state)
{
    struct folder *f = *state;
    struct error err = {0};
    _cleanup_fd_ int audit = sub_folder(f, LAYOUT_AUDIT);
    close(sub_folder(f, "stage"));
    put(f, "secret", "secret\n");
    char name[AUDIT_FILE_NAME_SIZE];
    audit_file_name(1, name);
    assert_int_equal(symlinkat("../secret", audit, name), 0);
    audit_file_name(2, name);
    assert_int_equal(symlinkat("../secret", audit, name), 0);
    _cleanup_fd_ int stage = stage_of(f);
    if (backup_audit(f->fd, stage, &err) == 0) { /* they were not even looked at */
        assert_int_equal(unlinkat(stage, LAYOUT_AUDIT, AT_REMOVEDIR), 0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {TEST(a_log_of_several_files), TEST(half_a_line),
                                       TEST(a_log_that_rotates), TEST(no_log), TEST(links)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
