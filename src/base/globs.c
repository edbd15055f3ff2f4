/* SPDX-License-Identifier: Apache-2.0 */

/* Most of what is listed are plain names, and ten thousand files are asked about each of them. */

#include "base/globs.h"

#include <fnmatch.h>
#include <string.h>

static bool is_plain(const char *pattern)
{
    return pattern[strcspn(pattern, "*?[\\")] == '\0';
}

static bool is_simple(const char *pattern)
{
    return pattern[strcspn(pattern, "[\\")] == '\0';
}

/* The byte behind a character; what is no UTF-8 goes byte by byte. */
static const char *next_character(const char *text)
{
    bool leads = (unsigned char)*text++ >= 0xc0;
    for (int i = 0; leads && i < 3 && ((unsigned char)*text & 0xc0) == 0x80; i++)
        text++;
    return text;
}

/* On a mismatch only the last star takes more: an earlier one could not do better. */
static bool fits_simple(const char *pattern, const char *text)
{
    const char *star = NULL, *tried = NULL;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            tried = text;
        } else if (*pattern == '?') {
            pattern++;
            text = next_character(text);
        } else if (*pattern != '\0' && *pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star;
            text = ++tried;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

static bool fits(const char *pattern, const char *text)
{
    if (is_plain(pattern))
        return strcmp(pattern, text) == 0;
    return is_simple(pattern) ? fits_simple(pattern, text) : fnmatch(pattern, text, 0) == 0;
}

bool globs_match(struct slice patterns, const char *path, const char *name)
{
    strv_each (pattern, patterns) {
        size_t len = strlen(pattern);
        if (len == 0)
            continue;
        if (fits(pattern, name) || fits(pattern, path))
            return true;
        if (strncmp(path, pattern, len) == 0 && path[len] == '/')
            return true;
    }
    return false;
}

void globs_weigh(struct slice patterns, uint64_t *ret_plain, uint64_t *ret_globs)
{
    *ret_plain = *ret_globs = 0;
    strv_each (pattern, patterns) {
        if (is_plain(pattern))
            (*ret_plain)++;
        else
            *ret_globs += strlen(pattern) + 1;
    }
}
