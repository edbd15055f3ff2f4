/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Room on the disk for the database, taken while there is some: on a full disk changes go on for a
 * while, and above all sandboxes can be deleted, which is what makes room.
 *
 * A change is written to the log, so the log is allocated as long as it ever gets; a checkpoint
 * then starts it over. The database itself grows by whole chunks, so that a few more pages find
 * their place.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/cleanup.h"
#include "store/state.h"

enum {
    LOG_ROOM = 16 << 20,      /* journal_size_limit: never more is given back */
    CHUNK = 1 << 20,          /* that the database grows by */
    REMOVALS = 256 << 10,     /* free in the file: what only removals may use */
    DISK_FREE_MIN = 64 << 20, /* with less on the disk its room is not given back */
};

void store_take_room(sqlite3 *handle)
{
    char path[4096 + 8];
    int chunk = CHUNK;
    struct stat st;
    const char *database = sqlite3_db_filename(handle, "main");
    if (database == NULL || database[0] == '\0' || stat(database, &st) < 0)
        return;
    sqlite3_file_control(handle, "main", SQLITE_FCNTL_CHUNK_SIZE, &chunk);
    /* No lock is ever on the log: closing it, unlike the other files, takes none away. */
    snprintf(path, sizeof(path), "%s-wal", database);
    _cleanup_fd_ int log = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (log >= 0)
        (void)!fallocate(log, FALLOC_FL_KEEP_SIZE, 0, LOG_ROOM);
}

static int take_number(void *ctx, sqlite3_stmt *row, struct error *err)
{
    *(int64_t *)ctx = sqlite3_column_int64(row, 0);
    return 0;
}

int store_count_pages(struct sql_db *db, int64_t *ret_pages, struct error *err)
{
    return sql_each(db, SQL_PAGE_COUNT, NULL, 0, take_number, ret_pages, "counting pages", err);
}

int store_check_room(struct sql_db *db, int64_t pages_before, bool removal, struct error *err)
{
    struct stat st;
    int64_t pages = 0, page_size = 0;
    const char *path = sqlite3_db_filename(db->handle, "main");
    if (store_count_pages(db, &pages, err) < 0)
        return -1;
    if (pages <= pages_before || path == NULL || path[0] == '\0' || stat(path, &st) < 0)
        return 0; /* it has not grown; in memory; a file that has gone store_check() notices */
    if (sql_each(db, SQL_PAGE_SIZE, NULL, 0, take_number, &page_size, "counting pages", err) < 0)
        return -1;
    sqlite3_int64 needed = pages * page_size + (removal ? 0 : REMOVALS);
    if (needed <= st.st_size)
        return 0;
    /* Without chunks (no server's connection) nothing comes of the hint. */
    if (sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_SIZE_HINT, &needed) == SQLITE_OK)
        return 0;
    return error_set(err, ERROR_QUOTA_EXCEEDED,
                     "the disk of the server's data folder is full: the database cannot grow");
}

bool store_has_room(const char *path)
{
    struct statvfs disk;
    return statvfs(path, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize >= DISK_FREE_MIN;
}
