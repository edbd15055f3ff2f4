/* SPDX-License-Identifier: Apache-2.0 */

/* What was typed before, also on other days: a file for the user alone. Two who type at once both
 * append to it. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/line.h"

enum { HISTORY_BYTES_MAX = 1 << 20, PATH_SIZE = 4096 };

static bool find_path(char out[PATH_SIZE])
{
    static const struct {
        const char *variable, *below;
    } places[] = {
        {"CELLA_HISTORY", ""},
        {"XDG_STATE_HOME", "/cella/code-history"},
        {"HOME", "/.local/state/cella/code-history"},
    };
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const char *value = getenv(places[i].variable);
        if (value != NULL && value[0] == '/')
            return snprintf(out, PATH_SIZE, "%s%s", value, places[i].below) < PATH_SIZE;
    }
    return false;
}

static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
}

static void remember(struct history *history, const char *line)
{
    char *copy = strdup(line);
    if (copy == NULL)
        return;
    if (history->count == HISTORY_LINES_MAX) {
        free(history->lines[0]);
        memmove(history->lines, history->lines + 1,
                (HISTORY_LINES_MAX - 1) * sizeof(history->lines[0]));
        history->count--;
    }
    history->lines[history->count++] = copy;
}

static void read_lines(struct history *history, int fd)
{
    _cleanup_buf_ struct buf text = BUF_INIT(HISTORY_BYTES_MAX);
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > HISTORY_BYTES_MAX / 2 ? size - HISTORY_BYTES_MAX / 2 : 0;
    ssize_t n;
    char piece[4096];
    if (size < 0 || lseek(fd, from, SEEK_SET) < 0)
        return;
    while ((n = read(fd, piece, sizeof(piece))) > 0)
        buf_add(&text, piece, (size_t)n);
    char *line = text.data, *end;
    for (; (end = memchr(line, '\n', (size_t)(text.data + text.len - line))) != NULL;
         line = end + 1) {
        *end = '\0';
        if (line != text.data || from == 0) /* the first one may be cut */
            remember(history, line);
    }
}

void history_open(struct history *history)
{
    char path[PATH_SIZE];
    if (!find_path(path))
        return;
    history->path = strdup(path);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0)
        read_lines(history, fd);
}

void history_add(struct history *history, const char *line)
{
    if (line[strspn(line, " \t")] == '\0' ||
        (history->count > 0 && strcmp(history->lines[history->count - 1], line) == 0))
        return;
    remember(history, line);
    if (history->path == NULL)
        return;
    make_folders(history->path);
    _cleanup_fd_ int fd =
        open(history->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    _cleanup_buf_ struct buf text = BUF_INIT(LINE_BYTES_MAX + 1);
    buf_addf(&text, "%s\n", line);
    if (fd >= 0 && !text.failed)
        (void)!write(fd, text.data, text.len);
}

void history_release(struct history *history)
{
    for (size_t i = 0; i < history->count; i++)
        free(history->lines[i]);
    free(history->path);
    *history = (struct history){0};
}
