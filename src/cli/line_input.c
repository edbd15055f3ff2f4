/* SPDX-License-Identifier: Apache-2.0 */

/* The terminal gives every key as it comes, and the line is drawn anew after what came at once. */

#include "cli/line_input.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/output.h"
#include "cli/screen.h"
#include "loop/co.h"

#define CLEAR_PAGE "\033[H\033[2J"

enum { PIECE = 4096, DRAWN_MAX = 1 << 20 };

static int draw(const struct line *line, const char *prompt, bool clear, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(DRAWN_MAX);
    if (clear)
        buf_adds(&out, CLEAR_PAGE);
    line_draw(line, prompt, screen_columns(), &out);
    return output_bytes(STDERR_FILENO, out.data, out.len, err);
}

/* 0: the end of stdin. */
static ssize_t read_keys(struct line_input *input, struct error *err)
{
    for (;;) {
        if (co_wait_fd(input->loop, STDIN_FILENO, EPOLLIN, -1, err) < 0)
            return -1;
        char *to = buf_reserve(&input->typed, PIECE);
        if (to == NULL)
            return buf_check(&input->typed, "what was typed", err);
        ssize_t n = read(STDIN_FILENO, to, PIECE);
        if (n >= 0) {
            buf_commit(&input->typed, (size_t)n);
            return n;
        }
        if (errno != EINTR && errno != EAGAIN)
            return error_sys(err, "reading from the terminal");
    }
}

/* Everything that is there, up to the line's end. */
static enum line_key take_keys(struct line_input *input, struct line *line, bool *ret_clear)
{
    for (;;) {
        size_t used;
        enum line_key key = line_take(line, input->typed.data, input->typed.len, &used);
        buf_consume(&input->typed, used);
        *ret_clear = *ret_clear || key == LINE_REDRAW;
        if (key != LINE_CHANGED && key != LINE_REDRAW)
            return key;
    }
}

static int type_line(struct line_input *input, struct line *line, const char *prompt,
                     enum line_key *ret_how, struct error *err)
{
    for (;;) {
        bool clear = false;
        enum line_key key = take_keys(input, line, &clear);
        if (draw(line, prompt, clear, err) < 0)
            return -1;
        if (key == LINE_NEEDS_MORE) {
            ssize_t n = read_keys(input, err);
            if (n < 0)
                return -1;
            if (n > 0)
                continue;
            key = LINE_ENDED;
        }
        *ret_how = key;
        const char *end = key == LINE_CANCELLED ? "^C\r\n" : "\r\n";
        return output_bytes(STDERR_FILENO, end, strlen(end), err);
    }
}

/* After a pause: raw again, at once, since what was typed ahead is not to be looked at. */
static int resume(struct line_input *input, struct error *err)
{
    struct termios raw = input->keyboard.before;
    cfmakeraw(&raw);
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
        return error_sys(err, "changing the terminal's settings");
    return 0;
}

int line_input_read(struct line_input *input, const char *prompt, struct buf *ret_line,
                    enum line_key *ret_how, struct error *err)
{
    struct line line;
    if (input->typed.max == 0)
        buf_init(&input->typed, LINE_BYTES_MAX);
    if (keyboard_raw(&input->keyboard, err) < 0 || resume(input, err) < 0)
        return -1;
    line_init(&line, input->history);
    int rc = type_line(input, &line, prompt, ret_how, err);
    if (rc == 0 && *ret_how == LINE_DONE) {
        history_add(input->history, line.text.data);
        buf_add(ret_line, line.text.data, line.text.len);
    }
    line_release(&line);
    return rc;
}

/* What is typed ahead would be edited by the terminal itself, were it as before. */
void line_input_pause(struct line_input *input)
{
    struct termios quiet = input->keyboard.before;
    if (!input->keyboard.raw)
        return;
    quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet);
}

void line_input_release(struct line_input *input)
{
    keyboard_restore(&input->keyboard);
    buf_release(&input->typed);
}
