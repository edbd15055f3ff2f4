/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How far a sandbox is trusted. A level is a row of one table: a value for each option, and what
 * the kernel is asked for besides. A request names a level and may change options of it; what comes
 * of it (struct trust_options) is recorded with the sandbox, so that a later table changes nothing
 * for those that are there.
 *
 * Who asks may always have less than the level allows. More than that is loosening, and needs
 * somebody who may administer the workspace.
 *
 * What a level says about networks is where a policy begins, and how far it may go: the policy
 * itself is sandbox/network.h's. network_enabled tells whether there is one, allowed_hosts is its
 * allow list.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "network/policy.h"

#define TRUST_LEVELS(X)                                                                            \
    X(STANDARD, "standard") /* of those who name none */                                           \
    X(TRUSTED, "trusted")                                                                          \
    X(SANDBOXED, "sandboxed")                                                                      \
    X(UNTRUSTED, "untrusted")

enum trust_level {
#define X(name, text) TRUST_##name,
    TRUST_LEVELS(X)
#undef X
        TRUST_LEVEL_COUNT
};

const char *trust_level_text(enum trust_level level);
/* NULL is TRUST_STANDARD. INVALID_ARGUMENT lists the levels there are. */
int trust_level_parse(const char *text, enum trust_level *ret_level, struct error *err);

/* What is in force. Zeros are no sandbox: use trust_resolve(). */
struct trust_options {
    enum trust_level level;
    bool network_enabled;
    bool allow_shell;         /* false: only programs with their arguments are started */
    bool allow_subprocess;    /* false: no command has other processes, only threads */
    bool allow_network_tools; /* of the server, on the sandbox's behalf */
    bool read_only_root;      /* /tmp and /workspace are memory, and end with the sandbox's run */
    bool log_all_commands;    /* in its log, and in the server's */
    uint64_t memory_limit_mb; /* the most that spec.resources may say; 0: no limit here */
    uint64_t cpu_limit_millis;
    uint64_t
        timeout_seconds; /* of a command that names none, and the most of those that do; 0: none
                          */
    bool no_new_privs;   /* no program gains privileges by exec; always where !allow_subprocess */
    /* What a level brings along. */
    bool no_capabilities;
    bool strict_calls;          /* no ptrace and its like */
    enum net_mode network;      /* of those that ask for none in particular */
    enum net_mode network_most; /* without loosening */
};

/* The options that a request can set, as rows: readers and writers walk them. */
enum trust_option {
    TRUST_NETWORK_ENABLED,
    TRUST_ALLOWED_HOSTS,
    TRUST_ALLOW_SHELL,
    TRUST_ALLOW_SUBPROCESS,
    TRUST_ALLOW_NETWORK_TOOLS,
    TRUST_MEMORY_LIMIT_MB,
    TRUST_CPU_LIMIT,
    TRUST_TIMEOUT_SECONDS,
    TRUST_READ_ONLY_ROOT,
    TRUST_LOG_ALL_COMMANDS,
    TRUST_NO_NEW_PRIVS,
    TRUST_OPTION_COUNT
};

enum trust_kind {
    TRUST_BOOL,
    TRUST_NUMBER, /* a whole number from min to max, or 0: none */
    TRUST_MILLIS, /* thousandths of what is shown (cpu_limit 0.5 is 500), the same way */
    TRUST_HOSTS,  /* a list, which is part of the network policy */
};

struct trust_row {
    const char *name;
    enum trust_kind kind;
    size_t offset; /* in struct trust_options; no TRUST_HOSTS has one */
    bool loose; /* TRUST_BOOL: the value that allows more. Of numbers it is the larger, and none */
    uint64_t min, max;
};

extern const struct trust_row trust_rows[TRUST_OPTION_COUNT];

/* A value as a number, 0 and 1 for booleans; the lists as their length. */
uint64_t trust_get(const struct trust_options *options, enum trust_option option);
void trust_set(struct trust_options *options, enum trust_option option, uint64_t value);
/* TRUST_OPTION_COUNT when there is none. */
enum trust_option trust_find(const char *name);

/* What a request asks for; zeros are the standard level. */
struct trust_request {
    const char *level;           /* NULL: standard; for a clone, all of its source's */
    unsigned given;              /* bits 1 << enum trust_option: which of the options are set */
    struct trust_options wanted; /* where given */
    struct slice hosts;          /* allowed_hosts, a list of strings */
    bool may_loosen;
};

/*
 * What is in force for it. `base` is what it must not be looser than, and where it begins when it
 * names no level (a clone's source); NULL: its level. INVALID_ARGUMENT, FORBIDDEN for what is
 * looser and may not be. Networks are not judged here.
 */
int trust_resolve(const struct trust_request *request, const struct trust_options *base,
                  struct trust_options *ret_options, struct error *err);

/* Whether two are the same in everything that a request can say, networks apart. */
bool trust_same(const struct trust_options *a, const struct trust_options *b);

/*
 * Limits that somebody asked for in resources, against those of the options: FORBIDDEN when they
 * are larger, unless they may be (then the options' are raised). `request` is what the options came
 * of: when it set one itself, a larger resource contradicts it, INVALID_ARGUMENT.
 */
int trust_check_limits(const struct trust_request *request, uint64_t memory_bytes,
                       uint64_t cpu_millis, struct trust_options *options, struct error *err);

/* A quantity for a resource that is not asked for: what the options allow, or NULL. */
const char *trust_memory(const struct trust_options *options, struct arena *arena);
const char *trust_cpu(const struct trust_options *options, struct arena *arena);

/* SHELL_NOT_ALLOWED where only programs are run. `what` is what was asked for ("a terminal", "a
 * Bash context"), as the message has it. */
int trust_check_shell(const struct trust_options *options, const char *what, struct error *err);
/* The same for a program and its arguments: a shell by its name is one, whoever starts it, and so
 * is pip, which runs what packages say. */
int trust_check_program(const struct trust_options *options, struct slice argv, struct error *err);

/* The time-out that a command gets, for one that was asked for (0: none). */
uint64_t trust_timeout_ms(const struct trust_options *options, uint64_t asked_ms);

/* Why an option is not what its level says, for people; NULL: it is in force as shown. */
const char *trust_enforcement(const struct trust_options *options, enum trust_option option);

struct plan;
/* Completes a plan, whose memory limit is set. */
void trust_plan(const struct trust_options *options, struct plan *plan);

/* As the store keeps them: one "name=value" per line, apart from the level. */
char *trust_text(const struct trust_options *options, struct arena *arena);
/* level NULL, of a sandbox from before there were levels: standard. CONFLICT when it cannot be
 * read. */
int trust_from_text(const char *level, const char *text, struct trust_options *ret_options,
                    struct error *err);
