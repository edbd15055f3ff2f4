/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A line (line.h) typed at the terminal on stdin. On a coroutine. */

#include "base/buf.h"
#include "base/error.h"
#include "cli/keyboard.h"
#include "cli/line.h"
#include "loop/loop.h"

struct line_input { /* start from a zeroed struct but for these */
    struct loop *loop;
    struct history *history;
    struct keyboard keyboard; /* raw while a line is typed */
    struct buf typed;         /* and not used yet: what was pasted is several lines */
};

/* Until the next line: keys are kept for it and not shown, but for ^C, which is a signal again. */
void line_input_pause(struct line_input *input);
/* Shows the prompt and waits for a line, without its end: LINE_DONE, LINE_CANCELLED or LINE_ENDED.
 * The terminal stays raw: line_input_pause() or line_input_release() come next, or another line. */
int line_input_read(struct line_input *input, const char *prompt, struct buf *ret_line,
                    enum line_key *ret_how, struct error *err);
void line_input_release(struct line_input *input);
