/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Kernels come along with the start of their interpreter, over its stdin: nothing of them lies in
 * the sandbox, where a cell could change it, and they are always those of this server.
 */

#include "code/languages.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "code/code.h"
#include "kernel_python.h"
#include "kernel_python_rich.h"

const char *const code_languages[] = {"python", NULL};

static struct slice strings(struct arena *arena, const char *const *items, size_t count)
{
    size_t len = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        len += strlen(items[i]) + 1;
    char *out = arena_alloc(arena, len);
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(items[i]) + 1;
        memcpy(out + at, items[i], size);
        at += size;
    }
    return (struct slice){out, len};
}

/* --- python --- */

static struct slice python_argv(struct arena *arena, const struct language *language,
                                const char *socket)
{
    static const char boot[] =
        "import sys;a,b=sys.stdin.buffer.read().split(b'\\0');"
        "exec(compile(a,'<cella>','exec'),{'__name__':'cella','NAME':sys.argv[1],'RICH':b})";
    const char *items[] = {language->program, "-c", boot, socket};
    return strings(arena, items, ARRAY_LEN(items));
}

static struct slice python_input(struct arena *arena)
{
    size_t len = sizeof(kernel_python) + 1 + sizeof(kernel_python_rich);
    char *text = arena_alloc(arena, len);
    memcpy(text, kernel_python, sizeof(kernel_python));
    memcpy(text + sizeof(kernel_python) + 1, kernel_python_rich, sizeof(kernel_python_rich));
    return (struct slice){text, len};
}

/* --- */

static const struct language languages[] = {
    {"python", "python3 py", "python3", python_argv, python_input},
};

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = words; *at != '\0';) {
        size_t size = strcspn(at, " ");
        if (size == len && strncasecmp(at, word, len) == 0)
            return true;
        at += size + strspn(at + size, " ");
    }
    return false;
}

const struct language *language_find(const char *name)
{
    if (name == NULL)
        return &languages[0];
    for (size_t i = 0; i < ARRAY_LEN(languages); i++)
        if (strcasecmp(languages[i].name, name) == 0 || has_word(languages[i].aliases, name))
            return &languages[i];
    return NULL;
}

const char *code_language(const char *name)
{
    const struct language *language = name == NULL ? NULL : language_find(name);
    return language == NULL ? NULL : language->name;
}
