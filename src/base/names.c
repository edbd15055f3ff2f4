/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a stranger may call a thing. Names end up in host names, cgroups and paths, so they are
 * checked once, here, and nobody behind has to quote them. Paths are made plain lexically, before
 * they reach a sandbox; that a symlink in it cannot lead outside is the kernel's work (openat2).
 */

#include "base/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

int name_check(const char *name, struct error *err)
{
    size_t len = name == NULL ? 0 : strlen(name);
    if (len == 0)
        return error_set(err, ERROR_INVALID_NAME, "the name is empty");
    if (len > NAME_MAX_LEN)
        return error_set(err, ERROR_INVALID_NAME, "the name is %zu characters long; %d are allowed",
                         len, NAME_MAX_LEN);
    for (size_t i = 0; i < len; i++)
        if (!is_alnum(name[i]) && name[i] != '-')
            return error_set(err, ERROR_INVALID_NAME,
                             "the name has %s at position %zu; allowed are a-z, 0-9 and -",
                             name[i] >= 'A' && name[i] <= 'Z' ? "a capital letter"
                                                              : "a character that is not allowed",
                             i + 1);
    if (name[0] == '-' || name[len - 1] == '-')
        return error_set(err, ERROR_INVALID_NAME,
                         "the name \"%s\" %s with -; it must be a letter or a digit", name,
                         name[0] == '-' ? "begins" : "ends");
    return 0;
}

int secret_name_check(const char *name, struct error *err)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t len = name == NULL ? 0 : strlen(name);
    if (len == 0 || len > NAME_MAX_LEN)
        return error_set(err, ERROR_INVALID_NAME,
                         "the name has %zu characters; 1 to %d are allowed", len, NAME_MAX_LEN);
    if (name[strspn(name, allowed)] != '\0' || strchr("-_.", name[0]) != NULL)
        return error_set(
            err, ERROR_INVALID_NAME,
            "the name \"%s\" is not letters, digits, -, _ and ., of which the first is "
            "a letter or a digit",
            name);
    return 0;
}

static void random_bytes(void *out, size_t len)
{
    /* Cannot fail once the kernel's generator is up, which flags == 0 waits for. */
    for (size_t done = 0; done < len;) {
        ssize_t n = getrandom((char *)out + done, len - done, 0);
        if (n < 0 && errno != EINTR)
            abort();
        if (n > 0)
            done += (size_t)n;
    }
}

void random_id(char *out, size_t len)
{
    /* 32 characters, so that five bits of a byte choose one without a bias; letters come first. */
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
    enum { LETTERS = 26 };

    unsigned char raw[64];
    for (size_t done = 0; done < len;) {
        size_t want = len - done < sizeof(raw) ? len - done : sizeof(raw);
        random_bytes(raw, want);
        for (size_t i = 0; i < want; i++) {
            unsigned pick = raw[i] & 31;
            if (done == 0 && pick >= LETTERS)
                continue; /* draw again: the first one is a letter */
            out[done++] = alphabet[pick];
        }
    }
    out[len] = '\0';
}

void random_name(char out[NAME_MAX_LEN + 1])
{
    static const char *const first[] = {
        "able",   "amber",  "bold",  "brave",  "brief",  "bright", "brisk", "calm",
        "candid", "clear",  "cosy",  "crisp",  "dapper", "deft",   "eager", "early",
        "fair",   "fond",   "frank", "fresh",  "gentle", "glad",   "grand", "happy",
        "hardy",  "humble", "jolly", "keen",   "kind",   "lively", "lucid", "lucky",
        "mellow", "merry",  "mild",  "modest", "neat",   "nimble", "noble", "patient",
        "plain",  "polite", "prime", "proud",  "quick",  "quiet",  "rapid", "ready",
        "robust", "serene", "sharp", "silent", "sleek",  "smart",  "solid", "steady",
        "sunny",  "swift",  "tidy",  "true",   "vivid",  "warm",   "wise",  "witty",
    };
    static const char *const second[] = {
        "badger", "beaver", "bison",   "bream",  "camel",  "cedar",   "cobra",   "condor",
        "coral",  "crane",  "cricket", "curlew", "dingo",  "dolphin", "eagle",   "egret",
        "falcon", "ferret", "finch",   "fox",    "gannet", "gecko",   "gibbon",  "goose",
        "hare",   "hawk",   "heron",   "ibex",   "ibis",   "jackal",  "kestrel", "koala",
        "lark",   "lemur",  "linnet",  "llama",  "lynx",   "magpie",  "marten",  "mole",
        "moose",  "newt",   "ocelot",  "oriole", "osprey", "otter",   "owl",     "panda",
        "perch",  "plover", "puffin",  "quail",  "raven",  "robin",   "seal",    "shrew",
        "stork",  "swan",   "tapir",   "tern",   "toucan", "viper",   "walrus",  "wren",
    };
    _Static_assert(ARRAY_LEN(first) == 64 && ARRAY_LEN(second) == 64, "six bits choose one");

    unsigned char raw[4];
    random_bytes(raw, sizeof(raw));
    snprintf(out, NAME_MAX_LEN + 1, "%s-%s-%02x%02x", first[raw[0] & 63], second[raw[1] & 63],
             raw[2], raw[3]);
}

int path_normalize(const char *path, size_t len, char *out, struct error *err)
{
    if (len == 0)
        return error_set(err, ERROR_INVALID_PATH, "the path is empty");
    if (len > PATH_BYTES_MAX)
        return error_set(err, ERROR_INVALID_PATH, "the path is %zu bytes long; %d are allowed", len,
                         PATH_BYTES_MAX);
    if (memchr(path, '\0', len) != NULL)
        return error_set(err, ERROR_INVALID_PATH, "the path holds a NUL byte");

    char plain[PATH_BYTES_MAX + 2]; /* a relative path grows by its slash */
    size_t used = 0;
    for (const char *p = path, *end = path + len; p < end;) {
        const char *slash = memchr(p, '/', (size_t)(end - p));
        size_t n = (size_t)((slash == NULL ? end : slash) - p);
        if (n == 2 && p[0] == '.' && p[1] == '.') {
            if (used == 0)
                return error_set(err, ERROR_INVALID_PATH, "the path %.*s leads out of the root",
                                 (int)(len > 200 ? 200 : len), path);
            while (plain[--used] != '/')
                ;
        } else if (n > 0 && !(n == 1 && p[0] == '.')) {
            plain[used++] = '/';
            memcpy(plain + used, p, n);
            used += n;
        }
        p += n + 1;
    }
    if (used == 0)
        plain[used++] = '/';
    if (used > PATH_BYTES_MAX)
        return error_set(err, ERROR_INVALID_PATH, "the path is longer than %d bytes",
                         PATH_BYTES_MAX);
    memcpy(out, plain, used);
    out[used] = '\0';
    return 0;
}
