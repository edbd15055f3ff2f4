/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The direct-exec decision. When in doubt the answer is "shell": a wrong "direct" would change
 * what a command means, a wrong "shell" only costs a millisecond.
 */

#include "agent/shell_words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Special anywhere in a line, in some shell that may be /bin/sh (dash, bash, busybox). */
static const char special[] = "#;\"'*?[]&|<>(){}$`^~!\\\n\r\v\f";

/*
 * Keywords, and built-ins that differ from the program of the same name or have none. echo,
 * printf, test, pwd and kill are here because the programs differ in details (escapes, %q, the
 * logical working directory, job numbers).
 */
static const char *const shell_does[] = {
    ".",      ":",       "alias", "bg",       "bind",    "break",     "builtin",  "caller",
    "case",   "cd",      "chdir", "command",  "compgen", "compopt",   "complete", "continue",
    "coproc", "declare", "dirs",  "disown",   "do",      "done",      "echo",     "elif",
    "else",   "enable",  "esac",  "eval",     "exec",    "exit",      "export",   "fc",
    "fg",     "fi",      "for",   "function", "getopts", "hash",      "help",     "history",
    "if",     "in",      "jobs",  "kill",     "let",     "local",     "logout",   "mapfile",
    "popd",   "printf",  "pushd", "pwd",      "read",    "readarray", "readonly", "return",
    "select", "set",     "shift", "shopt",    "source",  "suspend",   "test",     "then",
    "time",   "times",   "trap",  "type",     "typeset", "ulimit",    "umask",    "unalias",
    "unset",  "until",   "wait",  "while",
};

/* The same in a shell and as a program, as long as they get no arguments (--help). */
static const char *const same_alone[] = {"true", "false"};

static bool is_listed(const char *word, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static size_t count_words(const char *command)
{
    size_t count = 0;
    for (const char *p = command; *p != '\0'; p++)
        if (!is_blank(*p) && (p == command || is_blank(p[-1])))
            count++;
    return count;
}

char **shell_words_split(const char *command)
{
    if (strpbrk(command, special) != NULL)
        return NULL;
    size_t count = count_words(command);
    if (count == 0)
        return NULL;

    size_t table = (count + 1) * sizeof(char *);
    size_t len = strlen(command) + 1;
    char **words = malloc(table + len);
    if (words == NULL)
        return NULL;
    char *text = memcpy((char *)words + table, command, len);
    size_t i = 0;
    for (char *p = text; *p != '\0'; p++) {
        if (is_blank(*p))
            *p = '\0';
        else if (p == text || p[-1] == '\0')
            words[i++] = p;
    }
    words[count] = NULL;

    if (strchr(words[0], '=') != NULL || /* an assignment */
        is_listed(words[0], shell_does, ARRAY_LEN(shell_does)) ||
        (count > 1 && is_listed(words[0], same_alone, ARRAY_LEN(same_alone)))) {
        free(words);
        return NULL;
    }
    return words;
}
