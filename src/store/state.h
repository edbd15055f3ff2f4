/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of this folder share about an open store. */

#include <pthread.h>

#include "loop/work.h"
#include "store/sql.h"
#include "store/store.h"

struct store {
    struct sql_db db;
    struct loop *loop;
    struct workers *workers;     /* NULL: every call is made directly */
    struct forgetter *forgetter; /* forget.c; NULL until something was deleted */
    pthread_mutex_t mutex; /* held for a whole call, since a transaction is the connection's */
};

/* forget.c: what was deleted is to be gone from the log, too, soon. On the loop's thread. */
void store_forget(struct store *store);
void store_forget_end(struct store *store);

/* room.c: whether what a transaction has made of the database so far fits into its file, which is
 * made larger if need be; pages_before is its size in pages without the transaction.
 * QUOTA_EXCEEDED: the disk is full. */
int store_check_room(struct sql_db *db, int64_t pages_before, bool removal, struct error *err);
int store_count_pages(struct sql_db *db, int64_t *ret_pages, struct error *err);

/* room.c: has room on the disk taken ahead for this connection's database, as far as there is some;
 * whether there is enough to give some back for a moment. */
void store_take_room(sqlite3 *handle);
bool store_has_room(const char *path);

/* store_put_sandbox(), as a part of a larger change. */
int store_put_sandbox_in(struct sql_db *db, const struct store_sandbox *row,
                         const struct store_event *event, struct error *err);

/* Makes a call where it belongs: on the store's thread when the caller is a coroutine, here
 * otherwise; in a transaction that is rolled back when fn fails. */
int store_change(struct store *store, int (*fn)(struct sql_db *db, void *arg, struct error *err),
                 void *arg, struct error *err);

/* The same for what removes something, or leads to that: on a full disk it may use the room that is
 * kept for it. */
int store_change_removal(struct store *store,
                         int (*fn)(struct sql_db *db, void *arg, struct error *err), void *arg,
                         struct error *err);

/* lifespans.c: with its sandbox, in one transaction. */
int store_write_lifespan(struct sql_db *db, const char *sandbox_id,
                         const struct store_lifespan *row, struct error *err);

/* Makes a call here, without a transaction: reading at start-up, whose callbacks belong to the
 * caller's thread. */
int store_read(struct store *store, int (*fn)(struct sql_db *db, void *arg, struct error *err),
               void *arg, struct error *err);
