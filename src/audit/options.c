/* SPDX-License-Identifier: Apache-2.0 */

/* The options of the audit log, by a table. */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/log.h"
#include "base/cleanup.h"
#include "base/duration.h"
#include "base/quantity.h"

enum {
    TEXT_MAX = 256,
    FILE_BYTES_MIN = 64 * 1024,
    FILES_MIN = 2,
};
#define FILE_BYTES_MOST (UINT64_C(16) << 30)

static const struct audit_options defaults = {
    .file_bytes = UINT64_C(64) << 20,
    .files = 16,
    .keep_ms = INT64_C(90) * 24 * 3600 * 1000,
};

static bool set_reads(const char *value, struct audit_options *options)
{
    options->no_reads = strcmp(value, "no") == 0;
    options->all_reads = strcmp(value, "all") == 0;
    return options->no_reads || options->all_reads || strcmp(value, "yes") == 0;
}

static bool set_full(const char *value, struct audit_options *options)
{
    options->go_on = strcmp(value, "go-on") == 0;
    return options->go_on || strcmp(value, "refuse") == 0;
}

static bool set_size(const char *value, struct audit_options *options)
{
    return quantity_bytes(value, &options->file_bytes, NULL) == 0 &&
           options->file_bytes >= FILE_BYTES_MIN && options->file_bytes <= FILE_BYTES_MOST;
}

static bool set_files(const char *value, struct audit_options *options)
{
    size_t len = strlen(value);
    unsigned long files =
        len > 0 && len < 6 && strspn(value, "0123456789") == len ? strtoul(value, NULL, 10) : 0;
    options->files = (unsigned)files;
    return files >= FILES_MIN && files <= AUDIT_FILES_MAX;
}

static bool set_age(const char *value, struct audit_options *options)
{
    uint64_t seconds;
    if (duration_seconds(value, &seconds, NULL) < 0 || seconds < 1 ||
        seconds > UINT64_C(100) * 366 * 24 * 3600)
        return false;
    options->keep_ms = (int64_t)seconds * 1000;
    return true;
}

static const struct {
    const char *name;
    bool (*set)(const char *value, struct audit_options *options);
    const char *form;
} rows[] = {
    {"reads", set_reads, "yes, all or no"}, {"full", set_full, "refuse or go-on"},
    {"size", set_size, "64Ki to 16Gi"},     {"files", set_files, "2 to 10000"},
    {"age", set_age, "a time such as 90d"},
};

static int set_one(char *item, struct audit_options *options, struct error *err)
{
    char *equals = strchr(item, '=');
    if (equals != NULL) {
        *equals = '\0';
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
            if (strcmp(rows[i].name, item) == 0)
                return rows[i].set(equals + 1, options)
                           ? 0
                           : error_set(err, ERROR_INVALID_ARGUMENT, "%s: \"%.40s\" is not %s", item,
                                       equals + 1, rows[i].form);
    }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "\"%.40s\" is not \"on\", \"off\", or one of reads=, full=, size=, files= and "
                     "age=",
                     item);
}

int audit_options_parse(const char *text, struct audit_options *ret_options, struct error *err)
{
    struct audit_options options = defaults;
    char copy[TEXT_MAX];
    if (text == NULL)
        text = "";
    if (strlen(text) >= sizeof(copy))
        return error_set(err, ERROR_INVALID_ARGUMENT, "this is too much of it");
    snprintf(copy, sizeof(copy), "%s", text);
    options.off = strcmp(copy, "off") == 0;
    if (!options.off && strcmp(copy, "on") != 0) {
        char *rest = copy;
        for (char *item; (item = strsep(&rest, ",")) != NULL;)
            if (item[0] != '\0' && set_one(item, &options, err) < 0)
                return -1;
    }
    *ret_options = options;
    return 0;
}
