/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The terminal's other page and its raw keys. Whatever ends the program has to come by
 * screen_close(): a terminal that is left raw and on the wrong page is a terminal to be thrown
 * away.
 */

#include "cli/screen.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/output.h"
#include "loop/co.h"

#define ENTER_PAGE "\033[?1049h\033[?25l"
#define LEAVE_PAGE "\033[?25h\033[?1049l"
#define TO_TOP     "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_REST "\033[J"

enum { COLUMNS_DEFAULT = 80, ROWS_DEFAULT = 24, LOOK_MS = 200, KEY_INTERRUPT = 3, KEY_END = 4 };

static struct winsize window(void)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 || size.ws_row == 0)
        size = (struct winsize){.ws_col = COLUMNS_DEFAULT, .ws_row = ROWS_DEFAULT};
    return size;
}

size_t screen_columns(void)
{
    return window().ws_col;
}

size_t screen_rows(void)
{
    return window().ws_row;
}

bool screen_is_terminal(void)
{
    return isatty(STDOUT_FILENO) == 1;
}

/* As setlocale() would find it, without the rest of what that does. */
bool screen_shows_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    if (!screen_is_terminal())
        return false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0')
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return false;
}

/* --- a page --- */

static void signal_ready(struct watch *watch, uint32_t events)
{
    struct screen *screen = container_of(watch, struct screen, signals);
    struct signalfd_siginfo info;
    if (read(screen->signal_fd, &info, sizeof(info)) == sizeof(info))
        screen->ended = true;
}

static int watch_signals(struct screen *screen, struct loop *loop, struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    screen->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (screen->signal_fd < 0)
        return error_sys(err, "waiting for signals");
    if (watch_start(loop, &screen->signals, screen->signal_fd, EPOLLIN, signal_ready, err) == 0)
        return 0;
    close(screen->signal_fd);
    return -1;
}

int screen_open(struct screen *screen, struct loop *loop, struct error *err)
{
    if (tcgetattr(STDIN_FILENO, &screen->before) < 0)
        return error_sys(err, "asking the terminal");
    if (watch_signals(screen, loop, err) < 0)
        return -1;
    struct termios raw = screen->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    screen->open = true;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0 ||
        output_bytes(STDOUT_FILENO, ENTER_PAGE, strlen(ENTER_PAGE), err) < 0) {
        error_sys(err, "setting up the terminal");
        screen_close(screen);
        return -1;
    }
    return 0;
}

void screen_close(struct screen *screen)
{
    if (!screen->open)
        return;
    screen->open = false;
    (void)!write(STDOUT_FILENO, LEAVE_PAGE, strlen(LEAVE_PAGE));
    tcsetattr(STDIN_FILENO, TCSANOW, &screen->before);
    watch_stop(&screen->signals);
    close(screen->signal_fd);
}

int screen_draw(const struct buf *text, struct error *err)
{
    struct winsize size = window();
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    const char *line = text->data, *end = text->data + text->len;
    buf_adds(&out, TO_TOP);
    for (unsigned row = 0; row < size.ws_row && line < end; row++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((stop == NULL ? end : stop) - line);
        buf_add(&out, line, len < size.ws_col ? len : size.ws_col);
        buf_adds(&out, row + 1 < size.ws_row ? CLEAR_LINE "\r\n" : CLEAR_LINE);
        line += len + 1;
    }
    buf_adds(&out, CLEAR_REST);
    if (buf_check(&out, "the page", err) < 0)
        return -1;
    return output_bytes(STDOUT_FILENO, out.data, out.len, err);
}

/* In short waits: a signal sets a flag on the loop's own stack. */
int screen_key(struct screen *screen, struct loop *loop, int64_t timeout_ms)
{
    int64_t end = loop_now(loop) + timeout_ms;
    while (!screen->ended) {
        struct error err;
        unsigned char key;
        int64_t left = end - loop_now(loop);
        if (left <= 0)
            return 0;
        if (co_wait_fd(loop, STDIN_FILENO, EPOLLIN, left < LOOK_MS ? left : LOOK_MS, &err) < 0) {
            if (err.code == ERROR_TIMEOUT)
                continue;
            return -1;
        }
        if (read(STDIN_FILENO, &key, 1) != 1 || key == KEY_INTERRUPT || key == KEY_END)
            return -1;
        return key == 0 ? ' ' : key;
    }
    return -1;
}
