/* SPDX-License-Identifier: Apache-2.0 */

/* Executions and their ids. */

#include "sandbox/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

void history_run_begin(char ret_execution[EXECUTION_ID_SIZE])
{
    uint32_t number;
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        abort();
    snprintf(ret_execution, EXECUTION_ID_SIZE, "exec_%08x", number);
}

void history_run_end(struct sandboxes *s, const char *workspace, const char *name,
                     const char *execution, bool dirty)
{
}

bool history_enabled(struct sandboxes *s, const char *workspace, const char *name)
{
    return false;
}

static int not_yet(struct error *err)
{
    return error_set(err, ERROR_HISTORY_DISABLED, "this server keeps no history");
}

int history_list(struct sandboxes *s, const char *workspace, const char *name, size_t limit,
                 size_t offset, struct arena *arena, struct history_page *ret_page,
                 struct error *err)
{
    return not_yet(err);
}

int history_diff(struct sandboxes *s, const char *workspace, const char *name, const char *from,
                 const char *to, struct arena *arena, struct history_diff *ret_diff,
                 struct error *err)
{
    return not_yet(err);
}

int history_rollback(struct sandboxes *s, const char *workspace, const char *name,
                     const char *execution, struct arena *arena,
                     struct history_rollback *ret_rollback, struct error *err)
{
    return not_yet(err);
}
