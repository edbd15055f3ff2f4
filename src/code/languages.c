/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Kernels come along with the start of their interpreter, over its stdin: nothing of them lies in
 * the sandbox, where a cell could change it, and they are always those of this server.
 */

#include "code/languages.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "code/code.h"
#include "code/frames.h"
#include "kernel_bash.h"
#include "kernel_java.h"
#include "kernel_javascript.h"
#include "kernel_python.h"
#include "kernel_python_charts.h"
#include "kernel_python_errors.h"
#include "kernel_python_magics.h"
#include "kernel_python_rich.h"
#include "kernel_r.h"

const char *const code_languages[] = {"python", "javascript", "typescript", "bash",
                                      "r",      "java",       NULL};

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

static int framed_request(struct buf *out, uint32_t number, struct slice env, struct slice code,
                          struct error *err)
{
    code_frame_run(out, number, env, code);
    return buf_check(out, "code", err);
}

/* A kernel that comes before the runs in the same stream has its length in front. */
static struct slice with_length(struct arena *arena, struct slice kernel)
{
    char *text = arena_alloc(arena, 4 + kernel.len);
    for (unsigned i = 0; i < 4; i++)
        text[i] = (char)(kernel.len >> (8 * i));
    memcpy(text + 4, kernel.data, kernel.len);
    return (struct slice){text, 4 + kernel.len};
}

/* --- python --- */

static struct slice python_argv(struct arena *arena, const struct language *language,
                                const char *socket)
{
    static const char boot[] =
        "import sys\nif sys.version_info<(3,8):"
        "sys.stderr.write('this is Python %d.%d'%sys.version_info[:2]);sys.exit(126)\n"
        "a,*b=sys.stdin.buffer.read().split(b'\\0');"
        "exec(compile(a,'<cella>','exec'),{'__name__':'cella','NAME':sys.argv[1],'PARTS':b,"
        "'__builtins__':dict(vars(__builtins__))})"; /* its own: a cell may change the others */
    const char *items[] = {language->program, "-c", boot, socket};
    return strings(arena, items, ARRAY_LEN(items));
}

/* Its parts, in the order that the first of them knows, with a NUL between two. */
static struct slice python_input(struct arena *arena)
{
    static const struct slice parts[] = {
        {(const char *)kernel_python, sizeof(kernel_python)},
        {(const char *)kernel_python_rich, sizeof(kernel_python_rich)},
        {(const char *)kernel_python_charts, sizeof(kernel_python_charts)},
        {(const char *)kernel_python_magics, sizeof(kernel_python_magics)},
        {(const char *)kernel_python_errors, sizeof(kernel_python_errors)},
    };
    size_t len = 0, at = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        len += parts[i].len + (i > 0);
    char *text = arena_alloc(arena, len);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (i > 0)
            text[at++] = '\0';
        memcpy(text + at, parts[i].data, parts[i].len);
        at += parts[i].len;
    }
    return (struct slice){text, len};
}

/* --- javascript, typescript --- */

/* The kernel has descriptor 3 for itself; whatever inherits 1 and 2 writes to the other stream. */
static struct slice node_argv(struct arena *arena, const struct language *language,
                              const char *socket)
{
    static const char boot[] = "if(parseInt(process.versions.node)<16){"
                               "console.error('this is Node.js '+process.version);"
                               "process.exit(126)}"
                               "{const f=require('fs'),r=n=>{const b=Buffer.alloc(n);"
                               "for(let i=0;i<n;)i+=f.readSync(0,b,i,n-i);return b};"
                               "(0,eval)(String(r(r(4).readUInt32LE())))}";
    const char *items[] = {"sh", "-c", "exec 3>&1 1>&2; exec node -e \"$1\" \"$2\"",
                           "sh", boot, language->name};
    return strings(arena, items, ARRAY_LEN(items));
}

static struct slice node_input(struct arena *arena)
{
    return with_length(arena,
                       (struct slice){(const char *)kernel_javascript, sizeof(kernel_javascript)});
}

/* --- r --- */

/* Base R opens no descriptors, but pipes of commands, which have them: 4 is where runs come from, 3
 * where frames go. They are not to hear of interrupts, which go to the whole group. */
static struct slice r_argv(struct arena *arena, const struct language *language, const char *socket)
{
    static const char boot[] =
        "from<-pipe('trap \"\" INT; exec cat <&4','rb');"
        "to<-pipe('trap \"\" INT; exec cat >&3','wb');"
        "eval(parse(text=rawToChar(readBin(from,'raw',readBin(from,'integer',1,endian='little'))),"
        "keep.source=FALSE))";
    static const char start[] = "exec 3>&1 1>&2 4<&0 0</dev/null;"
                                "export EDITOR=\"${EDITOR-vi}\";" /* it needs one to start */
                                "exec R --no-echo --no-save --no-restore -e \"$1\"";
    const char *items[] = {"sh", "-c", start, "sh", boot};
    return strings(arena, items, ARRAY_LEN(items));
}

static struct slice r_input(struct arena *arena)
{
    return with_length(arena, (struct slice){(const char *)kernel_r, sizeof(kernel_r)});
}

/* --- java --- */

/* The launcher compiles a source file that it can seek in: one that is gone again when it reads it.
 * It opens what the kernel needs of the JDK: a descriptor by its number, and the environment. */
static struct slice java_argv(struct arena *arena, const struct language *language,
                              const char *socket)
{
    static const char script[] =
        "command -v java >/dev/null || exit 127;"
        "f=$(mktemp) && printf '%s\\n' \"$1\" >\"$f\" && exec 5<\"$f\" && rm \"$f\" || exit 1;"
        "exec 3>&1 1>&2;"
        "exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.awt.headless=true"
        " --add-opens java.base/java.io=ALL-UNNAMED --add-opens java.base/java.util=ALL-UNNAMED"
        " --source 11 /dev/fd/5";
    const char *items[] = {"sh", "-c", script, "sh",
                           arena_dup(arena, (const char *)kernel_java, sizeof(kernel_java))};
    return strings(arena, items, ARRAY_LEN(items));
}

static struct slice no_input(struct arena *arena)
{
    return (struct slice){0};
}

/* --- bash --- */

/* Interactive, because such a shell survives an interrupt; without what a terminal would want. */
static struct slice bash_argv(struct arena *arena, const struct language *language,
                              const char *socket)
{
    const char *items[] = {language->program, "--norc", "--noprofile", "--noediting", "-i"};
    return strings(arena, items, ARRAY_LEN(items));
}

static struct slice bash_input(struct arena *arena)
{
    return (struct slice){(const char *)kernel_bash, sizeof(kernel_bash)};
}

static void add_quoted(struct buf *out, struct slice text)
{
    buf_addc(out, '\'');
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] == '\'')
            buf_adds(out, "'\\''");
        else
            buf_addc(out, text.data[i]);
    buf_addc(out, '\'');
}

static int bash_request(struct buf *out, uint32_t number, struct slice env, struct slice code,
                        struct error *err)
{
    if (code.len > 0 && memchr(code.data, '\0', code.len) != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "code: bash can not read a NUL");
    strv_each (pair, env) {
        size_t name = strcspn(pair, "=");
        buf_addf(out, "__cella_env %.*s ", (int)name, pair);
        add_quoted(out, slice_of(pair + name + (pair[name] == '=')));
        buf_addc(out, '\n');
    }
    buf_addf(out, "{ __cella_begin %u; } 2>/dev/null\neval ", number);
    add_quoted(out, code);
    buf_addf(out, " </dev/null\n{ __cella_end %u; } 2>/dev/null\nexec 1>&198 2>&199\n", number);
    return buf_check(out, "code", err);
}

/* --- */

/* What an old Java, or one without its compiler, says before anything of ours runs. */
static const char *const java_unfit[] = {"Unrecognized option", "jdk.jshell", "jdk.compiler",
                                         "invalid source release", NULL};

static const struct language languages[] = {
    {.name = "python",
     .aliases = "python3 py",
     .program = "python3",
     .needs = "Python 3.8 or newer (package python3)",
     .argv = python_argv,
     .input = python_input,
     .request = framed_request},
    {.name = "javascript",
     .aliases = "js node nodejs",
     .program = "node",
     .needs = "Node.js 16 or newer (package nodejs)",
     .argv = node_argv,
     .input = node_input,
     .request = framed_request,
     .piped = true,
     .frames = true},
    {.name = "typescript",
     .aliases = "ts",
     .program = "node",
     .needs = "Node.js 22.13 or newer, or Node.js 16 (package nodejs) with the npm package "
              "typescript or esbuild",
     .argv = node_argv,
     .input = node_input,
     .request = framed_request,
     .piped = true,
     .frames = true},
    {.name = "bash",
     .aliases = "sh shell",
     .program = "bash",
     .needs = "Bash 4.3 or newer (package bash)",
     .argv = bash_argv,
     .input = bash_input,
     .request = bash_request,
     .piped = true},
    {.name = "r",
     .aliases = "rlang rscript",
     .program = "R",
     .needs = "R 3.5 or newer (package r-base-core)",
     .argv = r_argv,
     .input = r_input,
     .request = framed_request,
     .piped = true,
     .frames = true},
    {.name = "java",
     .aliases = "jshell",
     .program = "java",
     .needs = "a JDK 11 or newer (package default-jdk-headless)",
     .unfit = java_unfit,
     .argv = java_argv,
     .input = no_input,
     .request = framed_request,
     .piped = true,
     .frames = true},
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

int code_list_add(char list[CODE_LIST_SIZE], const char *name, struct error *err)
{
    const char *known = code_language(name);
    size_t len = strlen(list);
    if (known == NULL)
        return error_set(err, ERROR_CODE_LANGUAGE_UNKNOWN, "there is no \"%.40s\" here", name);
    if (has_word(list, known))
        return 0;
    /* All of them have room. */
    snprintf(list + len, CODE_LIST_SIZE - len, "%s%s", len == 0 ? "" : " ", known);
    return 0;
}
