/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The database's schema as a list of numbered steps. A step that was released is never changed: a
 * new one is added behind it.
 */

#include <stddef.h>

#include <sqlite3.h>

#include "base/error.h"

struct migration {
    int version; /* PRAGMA user_version once it is done: 1, 2, 3 … */
    const char *script;
};

extern const struct migration schema_migrations[];
extern const size_t schema_migration_count;

/* Does the steps that are missing, each in a transaction of its own. CONFLICT when the database
 * comes from a newer version; then, and on any failure, it is left as it was before the step. */
int schema_migrate(sqlite3 *handle, const struct migration *migrations, size_t n,
                   struct error *err);

/* CONFLICT unless the database has exactly the version that these steps lead to. */
int schema_check(sqlite3 *handle, const struct migration *migrations, size_t n, struct error *err);
