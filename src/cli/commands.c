/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every command there is. A row says how a verb is written, what it is for, which options it takes
 * and what does it; help, usage errors, completion and the manual page are made from it.
 *
 * The grammar is the one of the API's seed: sandboxes by `sandbox VERB`, what is inside one by
 * `run NAME file|process VERB`.
 */

#include "cli/verbs.h"

#include "base/cleanup.h"
#include "base/layout.h"
#include "base/quotas.h"

#define FLAG(name_, help_)                                                                         \
    {                                                                                              \
        .name = name_, .kind = OPTION_FLAG, .help = help_                                          \
    }
#define TEXT(name_, value_, help_)                                                                 \
    {                                                                                              \
        .name = name_, .kind = OPTION_TEXT, .value = value_, .help = help_                         \
    }
#define NUMBER(name_, value_, help_)                                                               \
    {                                                                                              \
        .name = name_, .kind = OPTION_NUMBER, .value = value_, .help = help_                       \
    }
#define CHOICE(name_, value_, help_)                                                               \
    {                                                                                              \
        .name = name_, .kind = OPTION_CHOICE, .value = value_, .help = help_                       \
    }
#define END_OF_OPTIONS                                                                             \
    {                                                                                              \
        .name = NULL                                                                               \
    }

#define STATUSES                                                                                   \
    "creating|running|starting|stopping|stopped|pausing|paused|resuming|deleting|failed"

#define ENV_OPTION                                                                                 \
    {                                                                                              \
        .name = "env", .letter = 'e', .repeats = true, .kind = OPTION_PAIR, .value = "NAME=VALUE", \
        .help = "an environment variable; may be given several times"                              \
    }

#define INPUT_OPTION                                                                               \
    {                                                                                              \
        .name = "stdin", .letter = 'i', .kind = OPTION_FLAG,                                       \
        .help = "pass standard input on to the command"                                            \
    }

#define TRUST_OPTIONS(default_)                                                                    \
    {.name = "trust",                                                                              \
     .kind = OPTION_CHOICE,                                                                        \
     .value = "standard|trusted|sandboxed|untrusted",                                              \
     .help = "how far it is trusted (default: " default_ ")"},                                     \
    {                                                                                              \
        .name = "security", .repeats = true, .kind = OPTION_PAIR, .value = "OPTION=VALUE",         \
        .help = "an option of the trust level, as allow_shell=false; may be given several times"   \
    }

#define LABEL_OPTION(help_)                                                                        \
    {                                                                                              \
        .name = "label", .repeats = true, .kind = OPTION_PAIR, .value = "KEY=VALUE", .help = help_ \
    }

/* clang-format off */
static const struct option_row globals[] = {
    {.name = "output", .letter = 'o', .kind = OPTION_CHOICE, .value = "table|json",
     .help = "a table for people (default), or the server's JSON for programs"},
    TEXT("url", "URL", "the server (default: CELLA_URL, `cella login`'s, or the data folder's)"),
    TEXT("api-key", "KEY", "its key, or a token (default: CELLA_API_KEY, `cella login`'s, or the data folder's)"),
    TEXT("workspace", "NAME", "the workspace (default: CELLA_WORKSPACE, or the key's own)"),
    {.name = "data", .kind = OPTION_DIR, .value = "DIR",
     .help = "the data folder of a server on this machine (default: CELLA_DATA, or " DEFAULT_DATA_DIR ")"},
    FLAG("version", "print the version"),
    {.name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "help on the command"},
    END_OF_OPTIONS,
};

#define NETWORK_OPTIONS                                                                            \
    CHOICE("network", "none|isolated|allowlist|full", "what it may reach: nothing, the public Internet, only what --allow names, or that and private ranges the operator opened"), \
    {.name = "allow", .repeats = true, .kind = OPTION_TEXT, .value = "RULE",                       \
     .help = "a host or address that it may reach: *.example.com, example.com:22, 203.0.113.0/24; may be given several times"}, \
    {.name = "deny", .repeats = true, .kind = OPTION_TEXT, .value = "RULE",                        \
     .help = "one that it may not reach; may be given several times"},                             \
    FLAG("ipv6", "it has IPv6 beside IPv4"),                                                       \
    FLAG("no-ipv6", "it has IPv4 only (default)")

#define LIFE_OPTIONS                                                                               \
    TEXT("ttl", "SPAN", "how long it lives, from its start or from when this is set: 30m; none"),  \
    TEXT("idle-timeout", "SPAN", "how long it may be unused: 10m; none"),                          \
    TEXT("max-age", "SPAN", "how old it gets at most: 7d; none"),                                  \
    CHOICE("on-expire", "stop|pause|delete|none", "what happens then (none: idle ones stop, others go)"), \
    CHOICE("wake-on-connect", "yes|no", "connections to its ports start it when it is stopped, and any use when paused"), \
    CHOICE("restart", "on-use|on-boot|always|no", "after a restart of server or machine: started by its first use (default), with the server, also when it ends, or not")

#define LOWER_OPTION                                                                               \
    TEXT("auto-lower", "X", "have limits lowered to the most of the last five measurements times "  \
                            "this, above 1; or off (default)")

#define HISTORY_OPTIONS                                                                            \
    FLAG("history", "a history of its files is kept (default)"),                                   \
    FLAG("no-history", "none is kept"),                                                            \
    {.name = "history-ignore", .repeats = true, .kind = OPTION_TEXT, .value = "PATTERN",           \
     .help = "what history leaves out besides caches and the like: dist, *.log, data/raw; may be given several times; none first: instead of them"}, \
    TEXT("history-max-file-size", "QUANTITY", "the largest file that history keeps: 1Mi (default: 10Mi)")

static const struct option_row list_options[] = {
    CHOICE("status", STATUSES, "only those with this status"),
    NUMBER("limit", "N", "at most so many (default: 20)"),
    NUMBER("offset", "N", "leave out the first N"),
    LABEL_OPTION("only those with this label; given several times, with all of them"),
    TEXT("group", "GROUP", "only those of this group"),
    END_OF_OPTIONS,
};

/* The limits besides cpu, memory and disk. */
#define MORE_LIMITS                                                                                \
    TEXT("pids", "N", "processes and threads: 100"),                                              \
    TEXT("disk-read", "QUANTITY", "bytes read from disk per second: 50M"),                        \
    TEXT("disk-write", "QUANTITY", "bytes written to disk per second: 50M"),                      \
    TEXT("disk-read-ops", "N", "reads from disk per second"),                                     \
    TEXT("disk-write-ops", "N", "writes to disk per second"),                                     \
    TEXT("network-in", "QUANTITY", "bytes received per second"),                                  \
    TEXT("network-out", "QUANTITY", "bytes sent per second"),                                     \
    TEXT("memory-bandwidth", "QUANTITY", "bytes to and from memory per second; or 10%")

static const struct option_row resize_options[] = {
    TEXT("cpu", "QUANTITY", "cores: 1, 0.5, 500m; or a share of the machine: 25%"),
    TEXT("memory", "QUANTITY", "512Mi, 1Gi, 10%"),
    TEXT("disk", "QUANTITY", "quota of its writable layer: 10Gi, 5%"),
    MORE_LIMITS,
    TEXT("factor", "X", "all that it has times this: 0.5, 2"),
    END_OF_OPTIONS,
};

static const struct option_row create_options[] = {
    TEXT("name", "NAME", "a DNS label; the server makes one up when none is given"),
    TEXT("group", "GROUP", "the group that it is to be in, and inherits from"),
    TEXT("image", "IMAGE", "what it is made from (default: host)"),
    TEXT("cpu", "QUANTITY", "cores: 1, 0.5, 500m"),
    TEXT("memory", "QUANTITY", "512Mi, 1Gi"),
    TEXT("disk", "QUANTITY", "quota of its writable layer: 10Gi"),
    MORE_LIMITS,
    ENV_OPTION,
    LABEL_OPTION("a label; may be given several times"),
    TRUST_OPTIONS("standard"),
    NETWORK_OPTIONS,
    LIFE_OPTIONS,
    LOWER_OPTION,
    HISTORY_OPTIONS,
    FLAG("disabled", "leave it stopped until it is started"),
    FLAG("wait", "return when it runs"),
    FLAG("no-wait", "return at once (default)"),
    NUMBER("timeout", "SECONDS", "how long to wait (default: 60)"),
    END_OF_OPTIONS,
};

static const struct option_row group_list_options[] = {
    NUMBER("limit", "N", "at most so many (default: 20)"),
    NUMBER("offset", "N", "leave out the first N"),
    END_OF_OPTIONS,
};

static const struct option_row group_resize_options[] = {
    TEXT("cpu", "QUANTITY", "cores of each: 1, 0.5, 500m; or a share of the machine: 25%"),
    TEXT("memory", "QUANTITY", "of each: 512Mi, 1Gi, 10%"),
    TEXT("disk", "QUANTITY", "of each: 10Gi, 5%"),
    MORE_LIMITS,
    TEXT("factor", "X", "all that each has times this: 0.5, 2"),
    LOWER_OPTION,
    END_OF_OPTIONS,
};

static const struct option_row group_create_options[] = {
    TEXT("name", "NAME", "of the group; the server makes one up when none is given"),
    NUMBER("count", "N", "so many sandboxes, named sandbox-1, sandbox-2, …"),
    {.name = "sandbox", .repeats = true, .kind = OPTION_TEXT, .value = "NAME",
     .help = "a sandbox of that name; may be given several times"},
    {.name = "from-file", .kind = OPTION_FILE, .value = "FILE",
     .help = "all of it as JSON, as the API takes it, with a spec for each sandbox; - is standard input"},
    TEXT("image", "IMAGE", "what they are made from (default: host)"),
    TEXT("cpu", "QUANTITY", "cores of each: 1, 0.5, 500m"),
    TEXT("memory", "QUANTITY", "of each: 512Mi, 1Gi"),
    TEXT("disk", "QUANTITY", "of each: 10Gi"),
    MORE_LIMITS,
    ENV_OPTION,
    TRUST_OPTIONS("standard"),
    NETWORK_OPTIONS,
    LIFE_OPTIONS,
    LOWER_OPTION,
    HISTORY_OPTIONS,
    FLAG("disabled", "leave them stopped until they are started"),
    FLAG("wait", "return when all of them run"),
    FLAG("no-wait", "return at once (default)"),
    NUMBER("timeout", "SECONDS", "how long to wait (default: 60)"),
    END_OF_OPTIONS,
};

static const struct option_row clone_options[] = {
    TEXT("name", "NAME", "of the new one; the server makes one up when none is given"),
    TEXT("cpu", "QUANTITY", "cores: 1, 0.5, 500m (default: as the source has)"),
    TEXT("memory", "QUANTITY", "512Mi, 1Gi (default: as the source has)"),
    TEXT("disk", "QUANTITY", "quota, what it begins with included (default: as the source has)"),
    MORE_LIMITS,
    ENV_OPTION,
    LABEL_OPTION("a label instead of the source's; may be given several times"),
    TRUST_OPTIONS("as the source's"),
    NETWORK_OPTIONS,
    LIFE_OPTIONS,
    HISTORY_OPTIONS,
    FLAG("wait", "return when it runs"),
    FLAG("no-wait", "return at once (default)"),
    NUMBER("timeout", "SECONDS", "how long to wait (default: 60)"),
    END_OF_OPTIONS,
};

static const struct option_row update_options[] = {
    TEXT("cpu", "QUANTITY", "cores: 1, 0.5, 500m"),
    TEXT("memory", "QUANTITY", "512Mi, 1Gi"),
    TEXT("disk", "QUANTITY", "quota of its writable layer: 10Gi"),
    MORE_LIMITS,
    ENV_OPTION,
    {.name = "remove-env", .repeats = true, .kind = OPTION_TEXT, .value = "NAME",
     .help = "take an environment variable away"},
    LABEL_OPTION("a label; may be given several times"),
    {.name = "remove-label", .repeats = true, .kind = OPTION_TEXT, .value = "KEY",
     .help = "take a label away"},
    LIFE_OPTIONS,
    LOWER_OPTION,
    HISTORY_OPTIONS,
    TEXT("revision", "REV", "only if this is still its revision: rev-123"),
    END_OF_OPTIONS,
};

static const struct option_row change_options[] = {
    FLAG("wait", "return when it is done"),
    FLAG("no-wait", "return at once (default)"),
    NUMBER("timeout", "SECONDS", "how long to wait (default: 60)"),
    END_OF_OPTIONS,
};

static const struct option_row wait_options[] = {
    CHOICE("status", STATUSES "|deleted", "what to wait for (default: running)"),
    NUMBER("timeout", "SECONDS", "give up after so long (default: 60)"),
    END_OF_OPTIONS,
};

static const struct option_row sandbox_logs_options[] = {
    NUMBER("tail", "N", "the newest so many lines (default: 100)"),
    {.name = "follow", .letter = 'f', .kind = OPTION_FLAG, .help = "go on with what comes"},
    CHOICE("level", "debug|info|warn|error", "this and what is worse (default: debug)"),
    TEXT("since", "TIME", "not before 2023-10-10T15:30:00Z, or than so long ago: 10m"),
    CHOICE("source", "sandbox|process", "only its own life, or only what its processes wrote"),
    END_OF_OPTIONS,
};

static const struct option_row metrics_options[] = {
    TEXT("period", "PERIOD", "how far back: 30s, 15m, 1h, 24h, 7d (default: 1h)"),
    TEXT("resolution", "SECONDS", "what a point stands for (default: 60)"),
    END_OF_OPTIONS,
};

static const struct option_row top_options[] = {
    FLAG("once", "print one table and return"),
    NUMBER("interval", "SECONDS", "draw it anew so often (default: 2)"),
    CHOICE("sort", "cpu|memory|disk|processes|name", "what comes first (default: cpu)"),
    END_OF_OPTIONS,
};

static const struct option_row read_options[] = {
    FLAG("decode", "the file holds base64: write what it stands for"),
    END_OF_OPTIONS,
};

static const struct option_row write_options[] = {
    TEXT("content", "TEXT", "the content itself"),
    {.name = "from-file", .kind = OPTION_FILE, .value = "FILE", .help = "a file on this machine"},
    TEXT("permissions", "OCTAL", "644, 0755 (default: as they were, or 644)"),
    END_OF_OPTIONS,
};

static const struct option_row rm_options[] = {
    {.name = "recursive", .letter = 'r', .kind = OPTION_FLAG,
     .help = "a directory with everything in it"},
    END_OF_OPTIONS,
};

static const struct option_row tree_options[] = {
    NUMBER("depth", "N", "levels to look into (default: all, at most 28)"),
    END_OF_OPTIONS,
};

static const struct option_row watch_options[] = {
    {.name = "recursive", .letter = 'r', .kind = OPTION_FLAG,
     .help = "a directory with everything in it"},
    TEXT("ignore", "GLOBS", "names or paths to leave out, with commas in between"),
    END_OF_OPTIONS,
};

static const struct option_row find_options[] = {
    CHOICE("type", "file|directory", "only these"),
    TEXT("exclude", "GLOBS", "directories not to go into, with commas in between"),
    NUMBER("limit", "N", "at most so many"),
    END_OF_OPTIONS,
};

static const struct option_row search_options[] = {
    FLAG("fuzzy", "look for a few letters in paths, not for text in files"),
    FLAG("case-sensitive", "upper and lower case differ"),
    TEXT("pattern", "GLOBS", "only files with such names"),
    TEXT("exclude", "GLOBS", "directories not to go into, with commas in between"),
    NUMBER("limit", "N", "at most so many"),
    END_OF_OPTIONS,
};

static const struct option_row cp_options[] = {
    {.name = "recursive", .letter = 'r', .kind = OPTION_FLAG,
     .help = "a directory with everything in it"},
    END_OF_OPTIONS,
};

static const struct option_row exec_options[] = {
    TEXT("working-dir", "DIR", "where it runs (default: /workspace)"),
    ENV_OPTION,
    TEXT("name", "NAME", "what it goes by besides its pid (default: proc- and eight more)"),
    INPUT_OPTION,
    NUMBER("timeout", "SECONDS", "end it after so long (default: never)"),
    TEXT("memory", "QUANTITY", "end it when it and its children take more than this, as in 256Mi"),
    NUMBER("processes", "N", "end it when it would have more processes and threads than this"),
    TEXT("max-output", "QUANTITY", "end it when it writes more than this, as in 1Mi"),
    NUMBER("open-files", "N", "how many files each of its processes can have open"),
    FLAG("detach", "print its pid and return at once"),
    END_OF_OPTIONS,
};

static const struct option_row code_options[] = {
    TEXT("language", "LANGUAGE", "python (the default), javascript, typescript, bash, r, java"),
    TEXT("context", "ID", "a context to run in (default: the language's own)"),
    {.name = "from-file", .kind = OPTION_FILE, .value = "FILE",
     .help = "a file on this machine with the code; its name says the language, if nothing else does"},
    {.name = "images", .kind = OPTION_DIR, .value = "DIR", .help = "write pictures there: image-1.png, …"},
    ENV_OPTION,
    NUMBER("timeout", "SECONDS", "interrupt it after so long (default: never)"),
    END_OF_OPTIONS,
};

static const struct option_row forward_options[] = {
    TEXT("address", "ADDRESS", "where to listen on this machine (default: 127.0.0.1)"),
    END_OF_OPTIONS,
};

#define PORT_OPTIONS                                                                               \
    CHOICE("access", "private|token|public", "who may connect: with a key, with a token, anybody"), \
    TEXT("command", "COMMAND", "what serves it: run when somebody connects and nothing listens")

static const struct option_row port_publish_options[] = {
    TEXT("host-port", "PORT|any|none", "the port of the host that leads to it (default: any)"),
    CHOICE("protocol", "http|tcp", "what is spoken on that (default: http); tcp has to be public"),
    PORT_OPTIONS,
    END_OF_OPTIONS,
};

static const struct option_row port_update_options[] = {
    PORT_OPTIONS,
    END_OF_OPTIONS,
};

static const struct option_row port_token_options[] = {
    TEXT("expires-in", "SPAN", "how long it opens the port (default: 24h)"),
    FLAG("link", "print an address with it, for a browser"),
    END_OF_OPTIONS,
};

static const struct option_row sandbox_token_options[] = {
    TEXT("scope", "SCOPE", "read, or write (default), which includes it"),
    TEXT("expires-in", "SPAN", "how long it opens the sandbox (default: 24h)"),
    END_OF_OPTIONS,
};

static const struct option_row workspace_limits_options[] = {
    TEXT("rate-limit", "RATES", "requests a second and at once of each of its callers: exec=50:200,read=off; or off"),
    TEXT("quota", "QUOTAS", "what the workspace may have, as sandboxes=10,cpu=4,memory=8Gi; off lifts one. The kinds and their usual values:" QUOTAS_HELP),
    FLAG("reset", "what the server's options say counts again"),
    END_OF_OPTIONS,
};

static const struct option_row workspace_delete_options[] = {
    FLAG("force", "delete its sandboxes first"),
    END_OF_OPTIONS,
};

static const struct option_row key_create_options[] = {
    TEXT("scope", "SCOPE", "read, write (default), admin or server; each includes those before it"),
    TEXT("expires", "DURATION", "when it ends: 12h, 30d (default: never)"),
    FLAG("e2b", "show it as E2B's clients want a key to look: e2b_ and hexadecimal digits"),
    END_OF_OPTIONS,
};

static const struct option_row token_options[] = {
    TEXT("client-id", "ID", "the id of a key (default: CELLA_CLIENT_ID, or that of the key in use)"),
    TEXT("client-secret", "KEY", "the key itself (default: CELLA_CLIENT_SECRET, or the key in use)"),
    TEXT("scope", "SCOPE", "fewer scopes than the key has, parted by spaces"),
    END_OF_OPTIONS,
};

static const struct option_row process_logs_options[] = {
    {.name = "follow", .letter = 'f', .kind = OPTION_FLAG, .help = "go on with what comes, until its end"},
    END_OF_OPTIONS,
};

static const struct option_row attach_options[] = {
    INPUT_OPTION,
    NUMBER("from", "OFFSET", "leave out what came before, in bytes of both streams (default: 0)"),
    END_OF_OPTIONS,
};

static const struct option_row shell_options[] = {
    TEXT("user", "NAME", "who it runs as (default: root)"),
    TEXT("shell", "PROGRAM", "the shell (default: the user's own, or bash, or sh)"),
    TEXT("session", "ID", "attach to this session, or make it: it stays when you leave"),
    TEXT("working-dir", "DIR", "where it begins (default: /workspace)"),
    ENV_OPTION,
    END_OF_OPTIONS,
};

static const struct option_row network_set_options[] = {
    NETWORK_OPTIONS,
    {.name = "header", .repeats = true, .kind = OPTION_TEXT, .value = "HOST:HEADER=SECRET",
     .help = "a header with a secret for requests to a host: \"api.example.com:Authorization=Bearer {my-secret}\"; may be given several times"},
    FLAG("header-upgrade", "requests that get one of these headers may become WebSockets"),
    FLAG("replace", "what is not given is empty from now on; else it stays as it was"),
    END_OF_OPTIONS,
};

static const struct option_row history_options[] = {
    NUMBER("limit", "N", "at most so many, the newest (default: 100)"),
    END_OF_OPTIONS,
};

static const struct option_row network_log_options[] = {
    NUMBER("limit", "N", "at most so many, the newest (default: 100)"),
    {.name = "follow", .letter = 'f', .kind = OPTION_FLAG, .help = "go on with what comes; what changes comes again"},
    TEXT("since", "TIME", "not before 2023-10-10T15:30:00Z, or than so long ago: 10m"),
    TEXT("verdict", "VERDICT", "only what was allowed, refused or failed, or one such as REFUSED_UNLISTED"),
    CHOICE("kind", "dns|http|tls|direct", "only names it asked for, web or TLS through the proxies, or past them"),
    FLAG("refused", "only what was refused, or failed"),
    END_OF_OPTIONS,
};

#define AUDIT_OPTIONS                                                                              \
    TEXT("since", "TIME", "not before 2023-10-10T15:30:00Z, or than so long ago: 10m"),            \
    TEXT("key", "KEY", "only what was done with this key, by its id or name"),                     \
    TEXT("sandbox", "NAME", "only what was done to this sandbox, by its name or id"),              \
    TEXT("operation", "OPERATION", "only one: \"POST /v0/sandbox\", or a class of them: exec"),    \
    TEXT("event", "EVENT", "only lines of a kind: request, command, server.started")

static const struct option_row audit_list_options[] = {
    NUMBER("limit", "N", "at most so many, the newest (default: 100)"),
    AUDIT_OPTIONS,
    END_OF_OPTIONS,
};

static const struct option_row audit_tail_options[] = {
    NUMBER("limit", "N", "begin with so many, the newest (default: 10)"),
    {.name = "follow", .letter = 'f', .kind = OPTION_FLAG, .help = "go on with what comes"},
    AUDIT_OPTIONS,
    END_OF_OPTIONS,
};

static const struct option_row audit_verify_options[] = {
    TEXT("expect", "SEQ:HASH", "a head that was kept elsewhere: the log has to have that line"),
    END_OF_OPTIONS,
};

#define POOL_OPTIONS                                                                               \
    NUMBER("size", "N", "how many are kept ready (default: 5); 0: none"),                          \
    TEXT("ttl", "TIME", "one that nobody took for so long is replaced (default: 30m)"),            \
    NUMBER("refill", "N", "how many are made at once, at most (default: 1)"),                      \
    TEXT("code", "LANGUAGE,…", "interpreters that run in them before they are taken: python,bash; none")

static const struct option_row pool_create_options[] = {
    TEXT("image", "IMAGE", "what they are made from (default: host)"),
    CHOICE("trust", "standard|trusted|sandboxed|untrusted", "how far they are trusted (default: standard)"),
    POOL_OPTIONS,
    TEXT("cpu", "QUANTITY", "what they hold until they are taken: cores"),
    TEXT("memory", "QUANTITY", "512Mi, 1Gi"),
    TEXT("disk", "QUANTITY", "quota of the writable layer: 10Gi"),
    FLAG("with-network", "for sandboxes that have a network; what they may reach each of them says"),
    END_OF_OPTIONS,
};

static const struct option_row pool_update_options[] = {
    POOL_OPTIONS,
    END_OF_OPTIONS,
};

#define SHELL_DETAILS                                                                              \
    "The exit status is the shell's, or the command's when one is given in place of a shell. A "   \
    "connection that is lost is made again, and nothing is lost with it. At the beginning of a "   \
    "line, \"~.\" detaches: the session goes on, for an hour with nobody attached (a quarter of "  \
    "one when it was not given a name). When standard input is no terminal it is typed as it "     \
    "comes, and Ctrl-D at its end."

static const struct option_row server_options[] = {
    TEXT("listen", "HOST:PORT", "the address to serve (default: " DEFAULT_LISTEN ")"),
    TEXT("user", "NAME", "who the part that faces the network runs as (default: " DEFAULT_USER ")"),
    TEXT("public-url", "URL", "how clients reach it, for the addresses in answers (default: as they did)"),
    CHOICE("tls", "on|off", "whether https is spoken on the same port (default: on)"),
    {.name = "tls-cert", .kind = OPTION_FILE, .value = "FILE",
     .help = "its certificate and those that signed it, as PEM (default: one by an authority of its own, see cella tls ca)"},
    {.name = "tls-key", .kind = OPTION_FILE, .value = "FILE", .help = "the certificate's key (default: in the same file)"},
    {.name = "jwt-config", .kind = OPTION_FILE, .value = "FILE",
     .help = "issuers of JWTs whose callers are let in, as JSON (default: none; see docs/operations.md)"},
    TEXT("domain", "NAME", "PORT-ID.NAME leads to that port of a sandbox; off: no name does (default: " DEFAULT_DOMAIN ")"),
    TEXT("ports", "ADDRESS:FROM-TO", "ports of the host that sandboxes may publish theirs on; off: none (default: " DEFAULT_PORTS ")"),
    TEXT("cors-origin", "ORIGIN", "web pages that may read answers: *, none, or https://a.example,… (default: *; with --no-auth none)"),
    {.name = "trusted-proxy", .repeats = true, .kind = OPTION_TEXT, .value = "CIDR",
     .help = "reverse proxies whose X-Forwarded-For or Forwarded says who asks; can be given several times (default: none)"},
    FLAG("allow-private-callbacks", "let callbacks go to private addresses, and to this machine"),
    FLAG("no-auth", "ask nobody for a key; on a loopback address only"),
    FLAG("no-history", "keep no history of sandboxes' files"),
    TEXT("history-size", "BYTES", "how large one sandbox's may be, as 500Mi: then its older half goes (default: 2000Mi, the most)"),
    TEXT("volume-size", "BYTES", "largest size of the volume for sandboxes, as 20G (default: what the disk has)"),
    TEXT("disk-reserve", "SIZE", "free space that the volume leaves on its disk, as 10G or 10% (default: 5%)"),
    CHOICE("storage", "auto|btrfs|plain", "where sandboxes keep their files (default: auto)"),
    CHOICE("network", "on|off", "whether sandboxes can have a network (default: on, where the machine can)"),
    TEXT("network-range", "CIDR", "their addresses, which nobody outside sees (default: 10.201.0.0/16)"),
    TEXT("network-range6", "CIDR", "those of IPv6 (default: a /64 of fd00::/8 that follows from the data folder's id)"),
    TEXT("resolver", "ADDRESS,…", "name servers for them (default: those of /etc/resolv.conf)"),
    {.name = "egress-ca", .kind = OPTION_FILE, .value = "FILE",
     .help = "certificate authorities, as PEM, that hosts which get secrets are believed for (default: this machine's)"},
    TEXT("server-memory", "BYTES", "how much memory its process for requests, and the one for networks, may take, in a cgroup each: 1Gi, or off (default: 1Gi)"),
    CHOICE("log-level", "error|warn|info|debug", "how much it says (default: info)"),
    TEXT("audit", "OPTIONS", "the log of who did what: off, or of reads=yes|all|no,full=go-on,size=64Mi,files=16,age=90d (default: on)"),
    TEXT("rate-limit", "RATES", "requests of one key a second, and at once: off, or of exec=300:2000,read=off,address=3000,local=on (default: on, for callers of other machines)"),
    TEXT("quota", "QUOTAS", "what each workspace may have, as sandboxes=10,cpu=4,memory=8Gi; off lifts one (streams: of the whole server). request-memory=160Mi,request-memory-per-key=64Mi bound what requests hold in the server. The kinds and their defaults:" QUOTAS_HELP),
    CHOICE("log-format", "text|json", "what its lines look like (default: text)"),
    FLAG("access-log", "a line for each request"),
    FLAG("metrics-open", "let anybody read /metrics, without a key"),
    TEXT("metrics-listen", "HOST:PORT", "serve /metrics, /health and /ready there too, without a key, and nothing else"),
    TEXT("otlp-endpoint", "URL", "an OpenTelemetry collector for traces and metrics, as http://127.0.0.1:4318 (default: OTEL_EXPORTER_OTLP_ENDPOINT)"),
    TEXT("trace-ratio", "0…1", "how many of the traces that begin here are recorded (default: 1)"),
    FLAG("trace-commands", "give commands TRACEPARENT of the request that runs them"),
    TEXT("drain-delay", "TIME", "after SIGTERM, serve on for so long while /ready says no (default: 0s)"),
    TEXT("drain-timeout", "TIME", "… then give requests under way so long to end (default: 5s)"),
    FLAG("keep-sandboxes", "let sandboxes run on when the server is stopped; the next one finds them"),
    TEXT("overcommit", "FACTORS", "how often it may be promised: cpu=4,memory=1.5,disk=1, or one for all (default: cpu=100,memory=4,disk=20,10 of the rest)"),
    TEXT("capacity", "QUANTITIES", "what there is to promise, where the kernel's word is not right: memory=8Gi,networkIn=125M"),
    {.name = "pool", .repeats = true, .kind = OPTION_TEXT, .value = "image=IMAGE,size=N",
     .help = "keep sandboxes made ahead; also trust=LEVEL, ttl=30m, refill=N, code=python+bash, name=NAME; may be given several times"},
    TEXT("network-allow-private", "CIDR,…", "private ranges that sandboxes may be let into: 10.1.0.0/16"),
    TEXT("metrics-interval", "SECONDS", "between two samples of what a sandbox uses, 1 to 60 (default: 10)"),
    END_OF_OPTIONS,
};

static const struct option_row secret_set_options[] = {
    {.name = "host", .repeats = true, .kind = OPTION_TEXT, .value = "HOST",
     .help = "where it may be sent: api.example.com, *.example.com; may be given several times"},
    {.name = "from-file", .kind = OPTION_FILE, .value = "FILE", .help = "a file with the value; - is standard input"},
    FLAG("keep-value", "leave the value as it is, and change the hosts"),
    END_OF_OPTIONS,
};

static const struct option_row secret_trust_options[] = {
    FLAG("remove", "take the sandbox's authority away"),
    END_OF_OPTIONS,
};

static const struct option_row restore_options[] = {
    TEXT("user", "NAME", "whom the database is to belong to: the user that the server is to run as (default: cella)"),
    END_OF_OPTIONS,
};

static const struct option_row doctor_options[] = {
    FLAG("leaks", "look for what belongs to no sandbox instead: mounts, cgroups, processes, folders"),
    END_OF_OPTIONS,
};

#define SANDBOXES "Sandboxes"
#define GROUPS "Groups"
#define FILES     "Files in a sandbox"
#define PROCESSES "Processes in a sandbox"
#define CODE      "Code in a sandbox"
#define TERMINALS "Terminals in a sandbox"
#define HISTORY   "History of a sandbox's files"
#define NETWORK   "Network of a sandbox"
#define PORTS     "Ports of a sandbox"
#define ACCESS    "Who may"
#define MACHINE   "This machine"
#define HELP      "Help"

static const struct verb_row verbs[] = {
    {SANDBOXES, "sandbox list", "show the sandboxes there are",
     NULL, list_options, VERB_REMOTE, verb_sandbox_list},
    {SANDBOXES, "sandbox get NAME", "show one, with its events",
     NULL, NULL, VERB_REMOTE, verb_sandbox_get},
    {SANDBOXES, "sandbox create", "make one",
     "Prints the name and the status at once, while the sandbox is being made; with --wait when it "
     "runs. A command sent to a sandbox that is being made waits for it by itself.",
     create_options, VERB_REMOTE, verb_sandbox_create},
    {SANDBOXES, "sandbox clone NAME", "make one that begins with the files of another",
     "A full copy, independent from then on. The source may run, and stands still for the moment of "
     "the copy; processes are not copied. Prints the new name and its status at once; with --wait when "
     "it runs.",
     clone_options, VERB_REMOTE, verb_sandbox_clone},
    {SANDBOXES, "sandbox update NAME", "change its limits, environment and labels",
     "Also while it runs: limits change at once, all of them or none, and commands started from then on "
     "have the new environment.",
     update_options, VERB_REMOTE, verb_sandbox_update},
    {SANDBOXES, "sandbox resize NAME", "change its limits, or multiply them",
     "Also while it runs: all of them or none, and never below what is in use. A limit is a quantity or "
     "a share of the machine.",
     resize_options, VERB_REMOTE, verb_sandbox_resize},
    {SANDBOXES, "sandbox start NAME", "start one that is stopped",
     NULL, change_options, VERB_REMOTE, verb_sandbox_start},
    {SANDBOXES, "sandbox pause NAME", "have its processes stand still, with all that they have in memory",
     "They go on with `cella sandbox resume`, where they were. What is asked of it meanwhile is refused, or "
     "resumes it (--wake-on-connect yes). A restart of the machine or of the server ends them: the files stay.",
     change_options, VERB_REMOTE, verb_sandbox_pause},
    {SANDBOXES, "sandbox resume NAME", "have one that is paused go on, or start one that is stopped",
     NULL, change_options, VERB_REMOTE, verb_sandbox_resume},
    {SANDBOXES, "sandbox stop NAME", "end its processes and keep its files",
     NULL, change_options, VERB_REMOTE, verb_sandbox_stop},
    {SANDBOXES, "sandbox delete NAME", "remove it with its files",
     NULL, change_options, VERB_REMOTE, verb_sandbox_delete},
    {SANDBOXES, "sandbox release NAME", "give it up: it is deleted, and its pool makes another one",
     "Nothing of it serves anybody else. Whether a pool is there for its like or not, it is gone.",
     change_options, VERB_REMOTE, verb_sandbox_release},
    {SANDBOXES, "sandbox wait NAME", "return when it has a status",
     "Fails at once when the sandbox has failed, and with exit status 6 when the time is over.",
     wait_options, VERB_REMOTE, verb_sandbox_wait},
    {SANDBOXES, "sandbox token NAME", "print a token that opens this sandbox and nothing else",
     "For an agent or a guest: with it, files, processes, code, terminals and ports of the sandbox are within "
     "reach, but neither its life and settings nor any other sandbox. It ends with the sandbox, and with the key that "
     "made it.",
     sandbox_token_options, VERB_REMOTE, verb_sandbox_token},
    {SANDBOXES, "sandbox revoke NAME", "make every such token of a sandbox worthless",
     "Who works with one at the moment is cut off.",
     NULL, VERB_REMOTE, verb_sandbox_revoke},
    {SANDBOXES, "sandbox logs NAME", "show what befell it, and what its processes wrote",
     NULL, sandbox_logs_options, VERB_REMOTE, verb_sandbox_logs},
    {SANDBOXES, "sandbox metrics NAME", "show what it used: cpu, memory, disk",
     "On a terminal a line of blocks per figure stands below the table. Elsewhere figures are plain "
     "numbers: cores, and bytes.",
     metrics_options, VERB_REMOTE, verb_sandbox_metrics},
    {SANDBOXES, "top", "watch what all sandboxes use",
     "Until q is pressed; c, m, d, p and n sort by cpu, memory, disk, processes and name. Into a pipe, "
     "and with --once, it prints one table.",
     top_options, VERB_REMOTE, verb_top},

    {GROUPS, "group list", "show the groups there are",
     NULL, group_list_options, VERB_REMOTE, verb_group_list},
    {GROUPS, "group get GROUP", "show one, with its sandboxes",
     NULL, NULL, VERB_REMOTE, verb_group_get},
    {GROUPS, "group create", "make one, with its first sandboxes or none",
     "All of them are made, or none. What the options ask for is what each of them has, and what sandboxes "
     "that are added later (sandbox create --group) inherit. In other commands a sandbox of a group is "
     "GROUP/NAME.",
     group_create_options, VERB_REMOTE, verb_group_create},
    {GROUPS, "group stats GROUP", "show what its sandboxes use, how long they ran and what they were asked",
     NULL, NULL, VERB_REMOTE, verb_group_stats},
    {GROUPS, "group resize GROUP", "change the limits of all its sandboxes, or multiply them",
     "Also while they run: all of them, or none.",
     group_resize_options, VERB_REMOTE, verb_group_resize},
    {GROUPS, "group start GROUP", "start those of its sandboxes that are stopped",
     NULL, change_options, VERB_REMOTE, verb_group_start},
    {GROUPS, "group stop GROUP", "end the processes of all its sandboxes and keep their files",
     NULL, change_options, VERB_REMOTE, verb_group_stop},
    {GROUPS, "group end GROUP", "remove it with all its sandboxes and their files",
     NULL, change_options, VERB_REMOTE, verb_group_end},

    {FILES, "run NAME file read PATH", "write a file to standard output",
     "The bytes are the file's own, whatever they are and however many.",
     read_options, VERB_REMOTE, verb_file_read},
    {FILES, "run NAME file ls PATH", "show what is in a directory",
     NULL, NULL, VERB_REMOTE, verb_file_ls},
    {FILES, "run NAME file write PATH [SOURCE]", "create or replace a file",
     "The content is one of --content TEXT, --from-file FILE, or standard input when SOURCE is \"-\". "
     "Directories on the way to it are made.",
     write_options, VERB_REMOTE, verb_file_write},
    {FILES, "run NAME file rm PATH", "remove a file or directory",
     NULL, rm_options, VERB_REMOTE, verb_file_rm},
    {FILES, "run NAME file tree PATH", "show all that is below a directory",
     NULL, tree_options, VERB_REMOTE, verb_file_tree},
    {FILES, "run NAME file watch PATH", "show what happens to files, as it happens",
     "Until Ctrl-C. With --output json each event is a line of JSON.",
     watch_options, VERB_REMOTE, verb_file_watch},
    {FILES, "run NAME file find PATH [PATTERN...]", "find files by name",
     "Patterns are globs; without any, everything is found.",
     find_options, VERB_REMOTE, verb_file_find},
    {FILES, "run NAME file search PATH QUERY", "find lines that hold a text",
     "The text is taken as it is. Binary files are left out.",
     search_options, VERB_REMOTE, verb_file_search},
    {FILES, "cp SOURCE TARGET", "copy files into a sandbox, or out of one",
     "One of the two is NAME:PATH in a sandbox, the other a path here; - is standard input or output. "
     "Permissions are kept. A directory needs --recursive; when the target is a directory that exists, "
     "the source comes into it.",
     cp_options, VERB_REMOTE, verb_cp},

    {PROCESSES, "run NAME process list", "show what runs and what has ended",
     NULL, NULL, VERB_REMOTE, verb_process_list},
    {PROCESSES, "run NAME process exec COMMAND...", "run a command as if it ran here",
     "One word is a command line for the sandbox's shell. Several words are a program and its "
     "arguments, passed on as they are; put \"--\" before them when some look like options. Output "
     "goes to standard output and standard error as it comes, and the exit status is the command's own "
     "(124 when --timeout ended it). Ctrl-C stops the command, a second one kills it.",
     exec_options, VERB_REMOTE, verb_process_exec},
    {PROCESSES, "run NAME process attach PID", "go on with a process as if it had been started here",
     "What is kept of its output comes first. Ctrl-C leaves the process alone.",
     attach_options, VERB_REMOTE, verb_process_attach},
    {PROCESSES, "run NAME process logs PID", "show what a process has written",
     NULL, process_logs_options, VERB_REMOTE, verb_process_logs},
    {PROCESSES, "run NAME process ports PID", "show the ports that a process and its children listen on",
     NULL, NULL, VERB_REMOTE, verb_process_ports},
    {PROCESSES, "run NAME process stop PID", "ask a process to end, then end it and its children",
     NULL, NULL, VERB_REMOTE, verb_process_stop},
    {PROCESSES, "run NAME process kill PID", "end a process and its children at once",
     NULL, NULL, VERB_REMOTE, verb_process_kill},

    {CODE, "run NAME code [CODE]", "run code in an interpreter that keeps its variables",
     "Without CODE, or with \"-\", the code is read from standard input. What it writes goes to standard output and "
     "standard error as it comes, the value of its last expression to standard output. The exit status is the run's: 1 "
     "when it failed, or what it exited with.",
     code_options, VERB_REMOTE, verb_code_run},
    {CODE, "code NAME", "one piece of code after the other",
     "Asks for code and runs it, again and again, in one interpreter; the value of the last expression is shown. Lines "
     "can be edited, and those of before come back with the arrow keys (they are kept in "
     "~/.local/state/cella/code-history). Open brackets and strings go on in the next line, and an empty line ends what "
     "is indented. Ctrl-C interrupts what runs and keeps its variables; Ctrl-D, or exit, is the end. With a file as its "
     "input it runs that.",
     code_options, VERB_REMOTE, verb_code},

    {TERMINALS, "shell NAME [COMMAND...]", "a terminal in a sandbox",
     SHELL_DETAILS, shell_options, VERB_REMOTE, verb_shell},
    {TERMINALS, "run NAME shell [COMMAND...]", "the same",
     SHELL_DETAILS, shell_options, VERB_REMOTE, verb_shell},
    {TERMINALS, "run NAME terminal list", "show the sessions there are",
     NULL, NULL, VERB_REMOTE, verb_terminal_list},
    {TERMINALS, "run NAME terminal close SESSION", "end a session with all that runs in it",
     NULL, NULL, VERB_REMOTE, verb_terminal_close},

    {HISTORY, "history NAME", "show which executions changed files, the newest first",
     "Files in /workspace and /home/user are tracked; what an image brings is the last row, with the id unknown.",
     history_options, VERB_REMOTE, verb_history},
    {HISTORY, "diff NAME [FROM] [TO]", "show what differs between two executions",
     "As git shows it. Without TO up to the newest commit, without FROM from the one before.",
     NULL, VERB_REMOTE, verb_diff},
    {HISTORY, "rollback NAME ID", "bring files back to where they were after an execution",
     "What was not committed is committed first, and the rollback is a commit of its own: rolling back to the "
     "one before undoes it.",
     NULL, VERB_REMOTE, verb_rollback},

    {NETWORK, "network get NAME", "show what it may reach",
     NULL, NULL, VERB_REMOTE, verb_network_get},
    {NETWORK, "network set NAME", "change what it may reach",
     "Also while it runs, and for connections that are open: what is not allowed any more is closed. A list "
     "that is given takes the place of the one before; the word none empties it. A sandbox that was started "
     "without a network has to be stopped first.",
     network_set_options, VERB_REMOTE, verb_network_set},
    {NETWORK, "network log NAME", "show what it tried to reach, and what became of it",
     "Names it asked for and connections, through the proxies (HTTP, TLS) and past them (direct), the oldest first; "
     "the same again within a while is counted.",
     network_log_options, VERB_REMOTE, verb_network_log},

    {PORTS, "port-forward NAME PORT...", "reach ports of a sandbox as ports of this machine",
     "PORT is [LOCAL:]REMOTE: 3000, 8080:3000, or 0:3000 for any free port here. Any TCP protocol works. "
     "What listens on the sandbox's loopback is reached; nobody else can connect to it, unless --address "
     "lets others in. Ends with Ctrl-C.",
     forward_options, VERB_REMOTE, verb_port_forward},

    {PORTS, "port list NAME", "show the published ports of a sandbox",
     NULL, NULL, VERB_REMOTE, verb_port_list},
    {PORTS, "port publish NAME PORT", "publish a port of a sandbox",
     "It is reached on a port of the host, and by the host name PORT-ID.DOMAIN. Private unless it is said "
     "otherwise: those who come show a key.",
     port_publish_options, VERB_REMOTE, verb_port_publish},
    {PORTS, "port update NAME PORT", "change who may connect, or what serves it",
     "Those who are connected have to come again when the access changes. An empty --command takes it away.",
     port_update_options, VERB_REMOTE, verb_port_update},
    {PORTS, "port unpublish NAME PORT", "take it back",
     NULL, NULL, VERB_REMOTE, verb_port_unpublish},
    {PORTS, "port token NAME PORT", "a token that opens a port whose access is token",
     "For people without a key. It opens this port and nothing else.",
     port_token_options, VERB_REMOTE, verb_port_token},
    {PORTS, "port revoke NAME PORT", "make every token for a port worthless",
     NULL, NULL, VERB_REMOTE, verb_port_revoke},

    {ACCESS, "login URL", "keep a server and a key for later calls",
     "Asks for the key when neither --api-key nor CELLA_API_KEY has one, tries it, and keeps it in a file "
     "that only you can read: ~/.config/cella/config.json. With --workspace that is kept too.",
     NULL, VERB_REMOTE, verb_login},
    {ACCESS, "logout", "forget them",
     NULL, NULL, VERB_LOCAL, verb_logout},
    {ACCESS, "whoami", "show who you are to the server, and in which workspace",
     NULL, NULL, VERB_REMOTE, verb_whoami},
    {ACCESS, "workspace list", "show the workspaces you get into",
     NULL, NULL, VERB_REMOTE, verb_workspace_list},
    {ACCESS, "workspace get WORKSPACE", "show its quotas and what is in use",
     "A limit is the server's, or the workspace's own where \"cella workspace limits\" has set one. streams-per-key shows your own streams.",
     NULL, VERB_REMOTE, verb_workspace_get},
    {ACCESS, "workspace create WORKSPACE", "make one",
     NULL, NULL, VERB_REMOTE, verb_workspace_create},
    {ACCESS, "workspace limits WORKSPACE", "show or change what one may",
     "Without an option it shows what is the workspace's own; what is not named is as the server's options say. "
     "Each option replaces what was there of its kind. For keys with the scope server.",
     workspace_limits_options, VERB_REMOTE, verb_workspace_limits},
    {ACCESS, "workspace delete WORKSPACE", "remove one with its keys",
     "Refused while it has sandboxes, unless --force deletes them first.",
     workspace_delete_options, VERB_REMOTE, verb_workspace_delete},
    {ACCESS, "key list", "show the workspace's API keys",
     NULL, NULL, VERB_REMOTE, verb_key_list},
    {ACCESS, "key create KEY", "make a key of that name",
     "The key is shown once. Its id and the key are also a client's id and secret: see `cella token`.",
     key_create_options, VERB_REMOTE, verb_key_create},
    {ACCESS, "key delete KEY", "revoke a key, by its id or name",
     "From then on neither it nor a token that was issued for it opens anything.",
     NULL, VERB_REMOTE, verb_key_delete},
    {ACCESS, "secret list", "show the workspace's secrets: their names and hosts, never their values",
     NULL, NULL, VERB_REMOTE, verb_secret_list},
    {ACCESS, "secret set SECRET", "store a secret that is sent for sandboxes and never into them",
     "The value comes from --from-file FILE, or from standard input (a terminal is asked without showing "
     "it); one line break at its end is left out. --host says where it may be sent; without it, an existing "
     "secret keeps its hosts, and with --keep-value its value. Which sandboxes have it sent is said by "
     "their network's headers. Needs the scope admin.",
     secret_set_options, VERB_REMOTE, verb_secret_set},
    {ACCESS, "secret trust NAME", "have TLS to the hosts of a sandbox's secrets end at the server",
     "Gives the sandbox a certificate authority of its own, which programs in it believe from then on: "
     "https:// to those hosts works and gets its headers. Without it only http:// does, which goes on as "
     "TLS outside. Prints the certificate; with --remove, takes it away.",
     secret_trust_options, VERB_REMOTE, verb_secret_trust},
    {ACCESS, "secret delete SECRET", "remove a secret: requests that need it fail from then on",
     NULL, NULL, VERB_REMOTE, verb_secret_delete},
    {ACCESS, "token", "print a bearer token that lives for an hour",
     "For a client's id and secret, or for the key that other commands use.",
     token_options, VERB_REMOTE, verb_token},
    {ACCESS, "env CLIENT", "print what other makers' clients have to be told to use this server",
     "As lines for a shell: eval \"$(cella env e2b)\". CLIENT is e2b, scalebox or blaxel. The key is the one that other "
     "commands use.",
     NULL, VERB_LOCAL, verb_env},

    {MACHINE, "pool list", "show what the server makes ahead of time",
     NULL, NULL, VERB_REMOTE, verb_pool_list},
    {MACHINE, "pool get POOL", "show one, with its figures",
     NULL, NULL, VERB_REMOTE, verb_pool_get},
    {MACHINE, "pool create [POOL]", "have sandboxes made ahead of time",
     "Any create that asks for the same image takes one of them, whatever its name, environment and "
     "limits, and is done in the time of a command; when none is left it is made as always. Needs a "
     "key with the scope server, as all of these do.",
     pool_create_options, VERB_REMOTE, verb_pool_create},
    {MACHINE, "pool update POOL", "change its size, or how long they wait",
     NULL, pool_update_options, VERB_REMOTE, verb_pool_update},
    {MACHINE, "pool delete POOL", "remove it; sandboxes that came from it stay",
     NULL, NULL, VERB_REMOTE, verb_pool_delete},

    {MACHINE, "audit list", "show who did what, newest first",
     "Requests and commands, with who sent them and what came of it; never what a command printed. An "
     "administrator sees his workspace's, one of the server's sees all.",
     audit_list_options, VERB_REMOTE, verb_audit_list},
    {MACHINE, "audit tail", "print the newest lines of the audit log as JSON, and go on with --follow",
     NULL, audit_tail_options, VERB_REMOTE, verb_audit_tail},
    {MACHINE, "audit verify", "check that no line of the audit log was changed, removed, moved or put in",
     "Reads the files of the data folder, as root or the server's user; the server may run. Says where "
     "something is wrong, and the exit status is 1 then. Keep the head that it prints somewhere else, and "
     "give it to --expect next time: that shows that the log was not written anew.",
     audit_verify_options, VERB_LOCAL, verb_audit_verify},

    {MACHINE, "server", "serve sandboxes from this machine",
     "Runs in the foreground, as root. On the first start it makes the data folder and an API key in "
     "it; commands on the same machine find both by themselves.",
     server_options, VERB_LOCAL, verb_server},
    {MACHINE, "backup FILE", "write a server's state, history and images into a file",
     "As root, on the server's machine, while it runs or not: the database of one moment, keys, secrets, "
     "certificates, the history of every sandbox, and images; not the other files of sandboxes, nor logs and "
     "measurements. \"-\" is standard output. The file opens everything that the server's keys open: keep it so.",
     NULL, VERB_LOCAL, verb_backup},
    {MACHINE, "restore FILE", "make a data folder from a backup",
     "As root; --data names the folder, which must not be there yet (or be empty). Every file is held to the "
     "backup's list of sums first, and the folder appears as a whole or not at all. \"-\" is standard input. A server "
     "that is then started on it has the same keys and sandboxes, which are stopped and have the files of their images.",
     restore_options, VERB_LOCAL, verb_restore},
    {MACHINE, "tls ca", "print the certificate authority that signed the server's certificate",
     "For the trust store of whoever speaks https to it: NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, REQUESTS_CA_BUNDLE. "
     "Commands on the server's machine find it by themselves.",
     NULL, VERB_LOCAL, verb_tls_ca},
    {MACHINE, "machine", "show what the machine has, what is promised and what is used",
     "TIMES is how often a resource may be promised (cella server --overcommit). Sandboxes are those of "
     "the workspace; the sums are over all.",
     NULL, VERB_REMOTE, verb_machine},
    {MACHINE, "doctor", "check that this machine can run sandboxes",
     "Says what is missing and how to get it; the exit status is 1 when something is missing that "
     "sandboxes need. With --leaks it lists what a server of the data folder has left on the machine "
     "without a sandbox that it belongs to, and the exit status says whether there was any.",
     doctor_options, VERB_LOCAL, verb_doctor},

    {HELP, "help [COMMAND...]", "this text, or help on one command",
     NULL, NULL, VERB_LOCAL, verb_help},
    {HELP, "completion SHELL", "print a completion script (SHELL: bash)",
     "To use it: source <(cella completion bash). It completes commands, options, and the names of "
     "sandboxes.",
     NULL, VERB_LOCAL, verb_completion},
    {HELP, "version", "print the version",
     NULL, NULL, VERB_LOCAL, verb_version},

    {NULL, "__complete [WORD...]", NULL, NULL, NULL, VERB_LOCAL, verb_complete},
    {NULL, "__names", NULL, NULL, NULL, VERB_REMOTE, verb_names},
    {NULL, "__man", NULL, NULL, NULL, VERB_LOCAL, verb_man},
};
/* clang-format on */

const struct commands cli_commands = {verbs, ARRAY_LEN(verbs), globals};
