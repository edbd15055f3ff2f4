/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Undoing has to be right at any point that the doing may have reached, so it looks before each
 * step: only what has the inode number of our content is ours to take away, and a directory is
 * removed only while it is empty. Steps are undone backwards.
 */

#include "agent/tree_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/file_new.h"
#include "agent/state_dir.h"
#include "base/cleanup.h"

enum { RACES_MAX = 64, STEP_STRINGS = 3 };

static void add_step(struct tree_journal *journal, char kind, ino_t inode, const char *path,
                     const char *hidden)
{
    char what[32];
    int len = snprintf(what, sizeof(what), "%c%" PRIuMAX, kind, (uintmax_t)inode);
    buf_add(&journal->steps, what, (size_t)len + 1);
    buf_add(&journal->steps, path, strlen(path) + 1);
    buf_add(&journal->steps, hidden, strlen(hidden) + 1);
}

void tree_journal_mkdir(struct tree_journal *journal, const char *path)
{
    add_step(journal, 'D', 0, path, "");
}

void tree_journal_create(struct tree_journal *journal, const char *path, ino_t inode)
{
    add_step(journal, 'N', inode, path, "");
}

void tree_journal_swap(struct tree_journal *journal, const char *path, const char *hidden,
                       ino_t inode)
{
    add_step(journal, 'X', inode, path, hidden);
}

int tree_journal_begin(struct tree_journal *journal, const char *state_dir, struct error *err)
{
    if (buf_check(&journal->steps, "the list of changes", err) < 0)
        return -1;
    for (int i = 0; i < RACES_MAX; i++) {
        cleanup_fd(&journal->fd);
        cleanup_fd(&journal->dir_fd);
        journal->fd = journal->dir_fd = -1;
        if (state_dir_open(state_dir, STATE_TREES, &journal->dir_fd, err) < 0)
            return -1;
        /* Locked before it has a name: nobody finds it and takes it for an orphan. */
        journal->fd = new_file_unnamed(journal->dir_fd);
        if (journal->fd < 0 && errno == ENOENT)
            continue; /* tidied away under us */
        if (journal->fd < 0 || flock(journal->fd, LOCK_EX | LOCK_NB) < 0)
            return error_sys(err, "%s", state_dir);
        if (write_whole(journal->fd, journal->steps.data, journal->steps.len, state_dir, err) < 0)
            return -1;
        char hidden[PATH_NAME_SIZE];
        if (new_file_hidden_name(hidden, err) < 0)
            return -1;
        int len = snprintf(journal->name, sizeof(journal->name), "t-%.240s", hidden);
        if (len > 0 && new_file_link(journal->fd, journal->dir_fd, journal->name) == 0)
            return 0;
        journal->name[0] = '\0';
        if (errno != ENOENT && errno != EEXIST)
            return error_sys(err, "%s", state_dir);
    }
    return error_set(err, ERROR_CONFLICT, "%s: does not stay", state_dir);
}

/* --- one step --- */

struct step {
    char kind;
    ino_t inode;
    const char *path;
    const char *hidden;
};

static bool is_inode(int dir_fd, const char *name, ino_t inode)
{
    struct stat st;
    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           st.st_ino == inode;
}

static void undo_swap(const struct step *step, const struct path_place *place)
{
    int fd = place->dir_fd;
    struct stat st;
    if (is_inode(fd, place->name, step->inode) &&
        fstatat(fd, step->hidden, &st, AT_SYMLINK_NOFOLLOW) == 0)
        syscall(SYS_renameat2, fd, step->hidden, fd, place->name, RENAME_EXCHANGE);
    if (is_inode(fd, step->hidden, step->inode))
        unlinkat(fd, step->hidden, 0);
}

/* `done`: the tree is there, and only what it replaced is to go. */
static void finish_step(const struct step *step, bool done)
{
    struct path_place place;
    struct error ignored;
    if (path_split(step->path, &place, &ignored) < 0)
        return;
    _cleanup_fd_ int dir_fd = path_open(place.dir, O_PATH | O_DIRECTORY);
    if (dir_fd < 0)
        return;
    place.dir_fd = dir_fd;
    if (done) {
        if (step->kind == 'X')
            unlinkat(dir_fd, step->hidden, 0);
        return;
    }
    if (step->kind == 'X')
        undo_swap(step, &place);
    else if (step->kind == 'D')
        unlinkat(dir_fd, place.name, AT_REMOVEDIR);
    else if (step->kind == 'N' && is_inode(dir_fd, place.name, step->inode))
        unlinkat(dir_fd, place.name, 0);
}

/* --- all of them --- */

static void finish_steps(struct slice steps, bool done)
{
    size_t strings = 0, count = 0;
    strv_each (text, steps)
        strings++;
    if (!strv_valid(steps) || strings % STEP_STRINGS != 0 || strings == 0)
        return;
    _cleanup_free_ struct step *list = calloc(strings / STEP_STRINGS, sizeof(*list));
    if (list == NULL)
        return;
    for (const char *text = strv_first(steps); text != NULL; count++) {
        struct step *step = &list[count];
        step->kind = text[0];
        step->inode = (ino_t)strtoumax(text + (text[0] != '\0'), NULL, 10);
        step->path = strv_next(steps, text);
        step->hidden = strv_next(steps, step->path);
        text = strv_next(steps, step->hidden);
    }
    while (count > 0)
        finish_step(&list[--count], done);
}

/* Removes the journal itself. */
static void forget(struct tree_journal *journal, const char *state_dir)
{
    unlinkat(journal->dir_fd, journal->name, 0);
    journal->name[0] = '\0';
    state_dir_tidy(state_dir, STATE_TREES);
}

void tree_journal_undo(struct tree_journal *journal, const char *state_dir)
{
    if (journal->name[0] == '\0')
        return;
    finish_steps((struct slice){journal->steps.data, journal->steps.len}, false);
    forget(journal, state_dir);
}

int tree_journal_done(struct tree_journal *journal, const char *state_dir, struct error *err)
{
    char done[PATH_NAME_SIZE];
    memcpy(done, journal->name, sizeof(done));
    done[0] = 'd';
    if (renameat(journal->dir_fd, journal->name, journal->dir_fd, done) < 0)
        return error_sys(err, "%s", state_dir);
    memcpy(journal->name, done, sizeof(done));
    finish_steps((struct slice){journal->steps.data, journal->steps.len}, true);
    forget(journal, state_dir);
    return 0;
}

void tree_journal_release(struct tree_journal *journal)
{
    buf_release(&journal->steps);
    cleanup_fd(&journal->fd);
    cleanup_fd(&journal->dir_fd);
}

/* --- after a crash --- */

static void recover_one(int dir_fd, const char *name, const char *state_dir)
{
    _cleanup_(tree_journal_release) struct tree_journal journal = TREE_JOURNAL_INIT;
    struct stat st, named;
    journal.dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
    journal.fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (journal.dir_fd < 0 || journal.fd < 0 || flock(journal.fd, LOCK_EX | LOCK_NB) < 0 ||
        fstat(journal.fd, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    /* Its owner may have renamed or removed it before it went: the name says what is to be done. */
    if (fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0 || named.st_ino != st.st_ino)
        return;
    snprintf(journal.name, sizeof(journal.name), "%s", name);
    size_t size = (size_t)st.st_size;
    char *to = buf_reserve(&journal.steps, size);
    if (to != NULL && pread(journal.fd, to, size, 0) == (ssize_t)size) {
        buf_commit(&journal.steps, size);
        finish_steps((struct slice){journal.steps.data, size}, name[0] == 'd');
    }
    forget(&journal, state_dir);
}

void tree_journals_recover(const char *state_dir)
{
    int fd = state_dir_find(state_dir, STATE_TREES);
    _cleanup_dir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && dir == NULL)
        close(fd);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            recover_one(fd, entry->d_name, state_dir);
    state_dir_tidy(state_dir, STATE_TREES);
}
