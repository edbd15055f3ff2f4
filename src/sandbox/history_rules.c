/* SPDX-License-Identifier: Apache-2.0 */

/* Rules of histories: reading them, and laying some over others. */

#include "sandbox/history_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/quantity.h"

/* What can be made again, belongs to programs, or is a history of its own. */
static const char usual_ignore[] =
    ".git\0node_modules\0__pycache__\0.venv\0.cache\0.npm\0.pytest_cache\0"
    ".mypy_cache\0.ruff_cache\0.tox\0.nox\0.gradle\0.m2\0.cargo\0.rustup\0"
    "*.pyc";
static const char usual_size[] = "10Mi";

const struct history_rules history_rules_usual = {
    .enabled = true,
    .file_max = HISTORY_FILE_DEFAULT,
    .ignore = {usual_ignore, sizeof(usual_ignore)},
};

/* ---- members of the list ---- */

enum member { ENABLED, SIZE, IGNORE, MEMBERS };

static const char *const names[MEMBERS] = {
    [ENABLED] = "enabled=", [SIZE] = "maxFileSize=", [IGNORE] = "ignore="};

/* What is behind the name; NULL: it is another member. */
static const char *value_of(const char *item, enum member member)
{
    size_t len = strlen(names[member]);
    return strncmp(item, names[member], len) == 0 ? item + len : NULL;
}

/* The first; NULL: nothing is said. */
static const char *find(struct slice list, enum member member)
{
    strv_each (item, list)
        if (value_of(item, member) != NULL)
            return value_of(item, member);
    return NULL;
}

/* ---- checking ---- */

static int refuse(const char *pattern, const char *why, struct error *err)
{
    return error_set(err, ERROR_INVALID_ARGUMENT, "spec.history.ignore: \"%.80s\" %s", pattern,
                     why);
}

static int check_pattern(const char *pattern, struct error *err)
{
    size_t len = strlen(pattern);
    if (len > HISTORY_IGNORE_LEN_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "spec.history.ignore: \"%.40s…\" has %zu bytes, and %d are the most",
                         pattern, len, HISTORY_IGNORE_LEN_MAX);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)pattern[i] < 0x20 || pattern[i] == 0x7f)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "spec.history.ignore: a pattern has a control character in it");
    if (pattern[0] == '/')
        return refuse(pattern,
                      "begins with a slash: a path is taken from /workspace or /home/user, as "
                      "\"data/raw\"",
                      err);
    if (pattern[len - 1] == '/')
        return refuse(pattern, "ends with a slash: a directory is named without, as \"dist\"", err);
    if (pattern[0] == '!')
        return refuse(pattern, "would keep what another leaves out, which there is no way to say",
                      err);
    if (strstr(pattern, "**") != NULL)
        return refuse(pattern, "has two stars in a row: one stands for slashes, too", err);
    if (strpbrk(pattern, "[\\") != NULL)
        return refuse(pattern, "has a bracket or a backslash: there are only * and ?", err);
    return 0;
}

static int check_ignore(struct slice list, struct error *err)
{
    size_t count = 0, bytes = 0;
    bool usual = false;
    strv_each (item, list) {
        const char *pattern = value_of(item, IGNORE);
        if (pattern == NULL || pattern[0] == '\0')
            continue;
        if (strcmp(pattern, HISTORY_IGNORE_USUAL) == 0 && usual)
            return refuse(pattern, "is there twice", err);
        usual |= strcmp(pattern, HISTORY_IGNORE_USUAL) == 0;
        bytes += strlen(pattern) + 1;
        if (++count > HISTORY_IGNORE_MAX || bytes > HISTORY_IGNORE_BYTES_MAX)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "spec.history.ignore: at most %d patterns, and %d bytes of them",
                             HISTORY_IGNORE_MAX, HISTORY_IGNORE_BYTES_MAX);
        if (check_pattern(pattern, err) < 0)
            return -1;
    }
    return 0;
}

static int read_size(struct slice list, uint64_t *ret_bytes, struct error *err)
{
    const char *size = find(list, SIZE);
    uint64_t bytes = HISTORY_FILE_DEFAULT;
    if (size != NULL && quantity_bytes(size, &bytes, err) < 0)
        return error_prefix(err, "spec.history.maxFileSize");
    if (bytes < 1 || bytes > HISTORY_FILE_MOST)
        return error_set(err, ERROR_INVALID_QUANTITY,
                         "spec.history.maxFileSize: \"%.40s\" is not from 1 to 64Mi", size);
    *ret_bytes = bytes;
    return 0;
}

int history_rules_check(struct slice list, struct error *err)
{
    uint64_t bytes;
    if (!strv_valid(list))
        return error_set(err, ERROR_INVALID_ARGUMENT, "spec.history is no list");
    return read_size(list, &bytes, err) < 0 ? -1 : check_ignore(list, err);
}

/* ---- reading ---- */

static bool names_usual(struct slice list)
{
    strv_each (item, list)
        if (value_of(item, IGNORE) != NULL &&
            strcmp(value_of(item, IGNORE), HISTORY_IGNORE_USUAL) == 0)
            return true;
    return false;
}

/* Who says nothing, and who says that it is the usual, say the same. */
static void add_patterns(struct slice list, struct buf *out)
{
    if (find(list, IGNORE) == NULL) {
        buf_add(out, usual_ignore, sizeof(usual_ignore));
        return;
    }
    if (!names_usual(list))
        buf_add(out, usual_ignore, sizeof(".git"));
    strv_each (item, list) {
        const char *pattern = value_of(item, IGNORE);
        if (pattern == NULL || pattern[0] == '\0')
            continue;
        if (strcmp(pattern, HISTORY_IGNORE_USUAL) == 0)
            buf_add(out, usual_ignore, sizeof(usual_ignore));
        else
            buf_add(out, pattern, strlen(pattern) + 1);
    }
}

/* One block: the rules, and behind them their patterns. */
int history_rules_read(struct slice list, struct history_rules **ret_rules, struct error *err)
{
    _cleanup_buf_ struct buf patterns = BUF_INIT(PATTERNS_BYTES_MAX);
    uint64_t bytes;
    if (history_rules_check(list, err) < 0 || read_size(list, &bytes, err) < 0)
        return -1;
    add_patterns(list, &patterns);
    if (buf_check(&patterns, "spec.history.ignore", err) < 0)
        return -1;
    struct history_rules *rules = malloc(sizeof(*rules) + patterns.len);
    if (rules == NULL)
        return error_sys(err, "allocating");
    *rules = (struct history_rules){.enabled = history_rules_enabled(list),
                                    .file_max = bytes,
                                    .ignore = {(char *)(rules + 1), patterns.len}};
    memcpy(rules + 1, patterns.data, patterns.len);
    *ret_rules = rules;
    return 0;
}

struct slice history_rules_over(struct slice list, struct slice under, struct arena *arena)
{
    size_t len = 0;
    char *out = arena_alloc(arena, list.len + under.len + 1);
    for (int i = 0; i < MEMBERS; i++) {
        struct slice from = find(list, (enum member)i) != NULL ? list : under;
        strv_each (item, from)
            if (value_of(item, (enum member)i) != NULL) {
                memcpy(out + len, item, strlen(item) + 1);
                len += strlen(item) + 1;
            }
    }
    return (struct slice){out, len};
}

bool history_rules_enabled(struct slice list)
{
    const char *enabled = find(list, ENABLED);
    return enabled == NULL || strcmp(enabled, "false") != 0;
}

const char *history_rules_size(struct slice list)
{
    const char *size = find(list, SIZE);
    return size != NULL ? size : usual_size;
}

struct slice history_rules_ignore(struct slice list, struct arena *arena)
{
    size_t len = 0;
    if (find(list, IGNORE) == NULL)
        return (struct slice){HISTORY_IGNORE_USUAL, sizeof(HISTORY_IGNORE_USUAL)};
    char *out = arena_alloc(arena, list.len + 1);
    strv_each (item, list) {
        const char *pattern = value_of(item, IGNORE);
        if (pattern == NULL || pattern[0] == '\0')
            continue;
        memcpy(out + len, pattern, strlen(pattern) + 1);
        len += strlen(pattern) + 1;
    }
    return (struct slice){out, len};
}

/* ---- in a commit ---- */

void history_ignore_write(struct slice ignore, struct buf *out)
{
    strv_each (pattern, ignore) {
        buf_adds(out, pattern);
        buf_addc(out, '\n');
    }
}

struct slice history_ignore_read(struct slice text, struct arena *arena)
{
    size_t len = text.len < PATTERNS_BYTES_MAX ? text.len : PATTERNS_BYTES_MAX - 1;
    while (len > 0 && text.data[len - 1] != '\n') /* what is cut is no pattern */
        len--;
    char *out = arena_dup(arena, text.data, len);
    for (size_t i = 0; i < len; i++)
        if (out[i] == '\n')
            out[i] = '\0';
    return (struct slice){out, len};
}

uint64_t history_ignore_mark(struct slice ignore)
{
    uint64_t mark = 0xcbf29ce484222325;
    for (size_t i = 0; i < ignore.len; i++)
        mark = (mark ^ (unsigned char)ignore.data[i]) * 0x100000001b3;
    return mark == 0 ? 1 : mark;
}
