/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which cgroup controllers are mounted where, and whether the volume is mounted already, is known
 * from the mount table alone: guessing paths would be wrong on the next distribution.
 */

#include "warden/mountinfo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        if (from[0] == '\\' && is_octal(from[1]) && is_octal(from[2]) && is_octal(from[3])) {
            *to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

bool mountinfo_parse(char *line, struct mount_line *ret_mount)
{
    /* id parent major:minor root target options optional-field… - fstype source super-options */
    char *fields[6], *save = NULL;
    line[strcspn(line, "\n")] = '\0';
    for (int i = 0; i < 6; i++) {
        fields[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
        if (fields[i] == NULL)
            return false;
    }
    const char *field;
    do {
        field = strtok_r(NULL, " ", &save);
        if (field == NULL)
            return false;
    } while (strcmp(field, "-") != 0);

    struct mount_line mount = {.root = fields[3], .target = fields[4]};
    mount.fstype = strtok_r(NULL, " ", &save);
    mount.source = strtok_r(NULL, " ", &save);
    mount.options = strtok_r(NULL, " ", &save);
    if (mount.fstype == NULL || mount.source == NULL || mount.options == NULL)
        return false;
    unescape(mount.root);
    unescape(mount.target);
    unescape(mount.source);
    *ret_mount = mount;
    return true;
}

bool option_listed(const char *options, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = options; at != NULL; at = strchr(at, ',')) {
        if (*at == ',')
            at++;
        if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

static void close_file(FILE **file)
{
    if (*file != NULL)
        fclose(*file);
}

int mountinfo_each(mount_fn fn, void *arg, struct error *err)
{
    _cleanup_(close_file) FILE *file = fopen("/proc/self/mountinfo", "re");
    if (file == NULL)
        return error_sys(err, "opening the mount table");
    _cleanup_free_ char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, file) >= 0) {
        struct mount_line mount;
        if (!mountinfo_parse(line, &mount))
            continue;
        int r = fn(&mount, arg);
        if (r != 0)
            return r;
    }
    return 0;
}
