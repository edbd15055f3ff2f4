/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Commands of sandboxes whose security options ask for a record of them: who ran what, as whom,
 * where. It is written before the command is sent, into two logs: the server's, at once, and the
 * sandbox's own, where its owner can read it.
 */

#include "sandbox/state.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"

enum { SHOWN_MAX = 300 }; /* bytes of a command in the logs */

static void save(void *arg)
{
    struct sandbox *sb = arg;
    struct sandboxes *s = sb->owner;
    sandbox_save_notes(sb);
    sandbox_drop(sb);
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

/* Nobody waits for the store: what comes next belongs to the command. */
static void save_soon(struct sandbox *sb)
{
    struct sandboxes *s = sb->owner;
    struct error err;
    sandbox_hold(sb);
    s->drivers++;
    if (co_spawn(s->loop, save, sb, NULL, &err) == 0)
        return;
    s->drivers--;
    sandbox_drop(sb);
    log_warn("sandbox %s: recording its log: %s", sb->id, err.message);
}

static void add_shown(struct buf *out, const char *text)
{
    for (; *text != '\0' && out->len <= SHOWN_MAX; text++)
        buf_addc(out, (unsigned char)*text < ' ' ? ' ' : *text);
}

/* The command on one line, cut where a character begins. */
static void show(const struct agent_exec *exec, struct buf *out)
{
    if (exec->command != NULL)
        add_shown(out, exec->command);
    strv_each (word, exec->argv) {
        if (out->len > 0)
            buf_addc(out, ' ');
        add_shown(out, word);
        if (out->len > SHOWN_MAX)
            break;
    }
    if (out->len <= SHOWN_MAX)
        return;
    size_t len = SHOWN_MAX;
    while (len > 0 && ((unsigned char)out->data[len] & 0xc0) == 0x80)
        len--;
    out->len = len;
    buf_adds(out, "…");
}

void sandbox_audit(struct sandbox *sb, const char *actor, const struct agent_exec *exec)
{
    _cleanup_buf_ struct buf text = BUF_INIT(2 * SHOWN_MAX);
    show(exec, &text);
    log_info("audit: sandbox %s/%s (%s): %s runs as %s in %.100s: %s", sb->workspace, sb->name,
             sb->id, actor, exec->user, exec->cwd, text.data);
    sandbox_note(sb, SANDBOX_LOG_INFO, "Command by %s, as %s: %s", actor, exec->user, text.data);
    save_soon(sb);
}
