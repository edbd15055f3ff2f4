/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Notes: what a sandbox's log says of its life besides events. Nobody waits for one to be stored:
 * they are gathered here and written when there is time.
 */

#include "sandbox/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/timetext.h"

enum { NOTE_TEXT_MAX = 512 };

static void push_note(struct sandbox *sb, struct note_record record)
{
    if (sb->note_count == NOTES_KEPT_MAX) {
        free(sb->notes[0].message);
        memmove(sb->notes, sb->notes + 1, (sb->note_count - 1) * sizeof(*sb->notes));
        sb->note_count--;
        if (sb->notes_unsaved > sb->note_count)
            sb->notes_unsaved = sb->note_count;
    }
    struct note_record *notes = realloc(sb->notes, (sb->note_count + 1) * sizeof(*sb->notes));
    if (notes == NULL || record.message == NULL)
        abort(); /* a few hundred bytes: nothing sensible can go on */
    sb->notes = notes;
    sb->notes[sb->note_count++] = record;
}

void sandbox_note(struct sandbox *sb, enum sandbox_log_level level, const char *fmt, ...)
{
    char text[NOTE_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    push_note(sb, (struct note_record){
                      .number = sb->note_count == 0 ? 1 : sb->notes[sb->note_count - 1].number + 1,
                      .time_ms = time_now_ms(),
                      .level = level,
                      .message = strdup(text),
                  });
    sb->notes_unsaved++;
}

void sandbox_load_note(struct sandbox *sb, const struct store_note *note)
{
    push_note(sb,
              (struct note_record){
                  .number = note->number,
                  .time_ms = note->time_ms,
                  .level = note->level <= SANDBOX_LOG_ERROR ? (enum sandbox_log_level)note->level
                                                            : SANDBOX_LOG_INFO,
                  .message = strdup(note->message),
              });
}

/* The store's thread reads copies, since the sandbox goes on meanwhile. */
void sandbox_save_notes(struct sandbox *sb)
{
    struct error err;
    size_t count = sb->notes_unsaved;
    sb->notes_unsaved = 0;
    if (count == 0 || sb->gone)
        return;
    struct arena *arena = arena_new();
    struct store_note *notes = arena_alloc(arena, count * sizeof(*notes));
    for (size_t i = 0; i < count; i++) {
        const struct note_record *record = &sb->notes[sb->note_count - count + i];
        notes[i] = (struct store_note){record->number, record->time_ms, record->level,
                                       arena_strdup(arena, record->message)};
    }
    if (store_add_notes(sb->owner->store, arena_strdup(arena, sb->id), notes, count, &err) < 0)
        log_warn("sandbox %s: recording its log: %s", sb->id, err.message);
    arena_free(arena);
}

void sandbox_free_notes(struct sandbox *sb)
{
    for (size_t i = 0; i < sb->note_count; i++)
        free(sb->notes[i].message);
    free(sb->notes);
}
