/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A log in a folder of its own, and what it looks like from outside. */

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

#include "audit/log.h"
#include "audit/verify.h"
#include "base/cleanup.h"
#include "base/timetext.h"

struct place {
    char path[64];
    int dir_fd, head_fd;
    struct audit_options options;
    struct audit *audit;
};

static inline void place_open(struct place *p)
{
    struct error err;
    if (audit_open(NULL, p->dir_fd, p->head_fd, &p->options, &p->audit, &err) < 0)
        fail_msg("%s", err.message);
}

static inline void place_make(struct place *p)
{
    struct error err;
    *p = (struct place){.path = "/tmp/cella-audit-XXXXXX"};
    char head[96];
    assert_non_null(mkdtemp(p->path));
    p->dir_fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(head, sizeof(head), "%s/head", p->path);
    p->head_fd = open(head, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(p->dir_fd >= 0 && p->head_fd >= 0);
    assert_int_equal(audit_options_parse("", &p->options, &err), 0);
    place_open(p);
}

static inline void place_remove(struct place *p)
{
    struct audit_files files;
    char name[AUDIT_FILE_NAME_SIZE];
    audit_close(p->audit);
    assert_int_equal(audit_files_list(p->dir_fd, &files, NULL), 0);
    for (size_t i = 0; i < files.count; i++) {
        audit_file_name(files.items[i].first, name);
        unlinkat(p->dir_fd, name, 0);
    }
    audit_files_release(&files);
    unlinkat(p->dir_fd, "head", 0);
    close(p->dir_fd);
    close(p->head_fd);
    rmdir(p->path);
}

static inline void place_write(struct place *p, const char *event, int times)
{
    for (int i = 0; i < times; i++) {
        struct buf *line = audit_begin(p->audit, event, time_now_ms());
        assert_non_null(line);
        audit_add_number(line, "n", i);
        audit_end(p->audit);
    }
    assert_int_equal(audit_flush(p->audit, NULL), 0);
}

/* --- the files' bytes --- */

static inline uint64_t last_file(struct place *p)
{
    struct audit_files files;
    assert_int_equal(audit_files_list(p->dir_fd, &files, NULL), 0);
    assert_true(files.count > 0);
    uint64_t first = files.items[files.count - 1].first;
    audit_files_release(&files);
    return first;
}

static inline char *file_read(struct place *p, uint64_t first)
{
    static char text[1 << 20];
    char name[AUDIT_FILE_NAME_SIZE];
    audit_file_name(first, name);
    int fd = openat(p->dir_fd, name, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    assert_true(n >= 0);
    text[n] = '\0';
    close(fd);
    return text;
}

static inline void file_write(struct place *p, uint64_t first, const char *text)
{
    char name[AUDIT_FILE_NAME_SIZE];
    audit_file_name(first, name);
    int fd = openat(p->dir_fd, name, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* As a process that is killed leaves it: what was flushed is there, and no word of the end. */
static inline void place_kill(struct place *p)
{
    char head[AUDIT_HEAD_SIZE];
    assert_int_equal(audit_flush(p->audit, NULL), 0);
    uint64_t first = last_file(p);
    char *text = strdup(file_read(p, first));
    ssize_t n = pread(p->head_fd, head, sizeof(head), 0);
    audit_close(p->audit);
    p->audit = NULL;
    file_write(p, first, text);
    assert_int_equal(pwrite(p->head_fd, head, (size_t)n, 0), n);
    free(text);
}

/* --- what a check finds --- */

struct findings {
    unsigned notes;
    struct audit_finding problems[64];
    size_t count;
};

static inline void collect(void *ctx, const struct audit_finding *finding)
{
    struct findings *found = ctx;
    if (finding->is_note)
        found->notes++;
    else if (found->count < 64)
        found->problems[found->count++] = *finding;
}

static inline struct audit_summary place_verify(struct place *p, struct findings *found)
{
    struct audit_summary summary;
    struct audit_head head;
    struct error err;
    *found = (struct findings){0};
    assert_int_equal(audit_head_read(p->head_fd, &head, &err), 0);
    if (audit_verify(p->dir_fd, &head, 1, collect, found, &summary, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(summary.problems, found->count);
    return summary;
}
