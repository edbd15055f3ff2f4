/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What other programs have done to the machine's network that sandboxes would feel: a firewall that
 * drops whatever is forwarded (Docker sets one up), and ports that are gone. Cella touches nobody
 * else's rules, so all it can do is to say what they do, and what would help.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/layout.h"
#include "cli/doctor.h"

enum { RULES_MAX = 4 << 20, READ_PIECE = 64 * 1024 };

/* ---- asking a program ---- */

static _Noreturn void become(char *const *argv, int out)
{
    char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", locale[] = "LC_ALL=C";
    char *envp[] = {path, locale, NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
        dup2(null, STDERR_FILENO) >= 0)
        execvpe(argv[0], argv, envp);
    _exit(127);
}

/* All that it prints; false when it fails. What is more than fits is read, and forgotten. */
static bool ask(char *const *argv, struct buf *out)
{
    int ends[2], status;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    _cleanup_fd_ int reading = ends[0];
    pid_t pid = fork();
    if (pid == 0)
        become(argv, ends[1]);
    close(ends[1]);
    if (pid < 0)
        return false;
    _cleanup_free_ char *piece = malloc(READ_PIECE);
    ssize_t n;
    while (piece != NULL &&
           ((n = read(reading, piece, READ_PIECE)) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0 && out->len + (size_t)n < RULES_MAX)
            buf_add(out, piece, (size_t)n);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    buf_addc(out, '\0');
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && !out->failed;
}

/* ---- firewalls ---- */

static bool has(const char *line, size_t len, const char *word)
{
    return memmem(line, len, word, strlen(word)) != NULL;
}

/* "table ip filter {", "	chain FORWARD {": what stands between the word and the brace. */
static void take_name(const char *line, size_t len, const char *word, char out[FORWARD_NAME_MAX])
{
    const char *at = memmem(line, len, word, strlen(word));
    const char *end = at == NULL ? NULL : memchr(at, '{', (size_t)(line + len - at));
    if (end == NULL)
        return;
    at += strlen(word);
    snprintf(out, FORWARD_NAME_MAX, "%.*s", (int)(end - at > 0 ? end - at - 1 : 0), at);
}

bool forward_drop_find(const char *ruleset, struct forward_drop *ret_drop)
{
    struct forward_drop drop = {0};
    char table[FORWARD_NAME_MAX] = "", chain[FORWARD_NAME_MAX] = "";
    bool ours = false, found = false;
    for (const char *line = ruleset; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        if (strncmp(line, "table ", 6) == 0) {
            take_name(line, len, "table ", table);
            ours = strstr(table, " cella_") != NULL;
        } else if (has(line, len, "chain ") && has(line, len, "{")) {
            take_name(line, len, "chain ", chain);
            drop.docker = drop.docker || strcmp(chain, "DOCKER-USER") == 0;
        } else if (!ours && has(line, len, "hook forward") && has(line, len, "policy drop") &&
                   strncmp(table, "ip6 ", 4) != 0) {
            snprintf(drop.table, sizeof(drop.table), "%s", table);
            snprintf(drop.chain, sizeof(drop.chain), "%s", chain);
            found = true;
        } else if (!ours && has(line, len, "cellaup") && has(line, len, "accept")) {
            drop.excepted = true;
        }
        line += len + (line[len] == '\n');
    }
    *ret_drop = drop;
    return found;
}

/* The older tables of the kernel, which nft does not show. They exist once somebody has used them.
 */
static bool legacy_drops(struct forward_drop *ret_drop)
{
    char names[256], program[] = "iptables-legacy", option[] = "-S";
    char *argv[] = {program, option, NULL};
    _cleanup_buf_ struct buf rules = BUF_INIT(RULES_MAX);
    if (!doctor_read("/proc/net/ip_tables_names", names, sizeof(names)) ||
        strstr(names, "filter") == NULL || !ask(argv, &rules) ||
        strstr(rules.data, "-P FORWARD DROP") == NULL)
        return false;
    *ret_drop = (struct forward_drop){
        .table = "iptables-legacy",
        .chain = "FORWARD",
        .docker = strstr(rules.data, "-N DOCKER-USER") != NULL,
        .excepted = strstr(rules.data, "-i cellaup") != NULL,
        .legacy = true,
    };
    return true;
}

static void fix_drop(const struct forward_drop *drop, struct finding *f)
{
    if (drop->docker || drop->legacy)
        finding_fix(f,
                    "%s -I %s -i cellaup+ -j ACCEPT; %s -I %s -o cellaup+ -m state --state "
                    "ESTABLISHED,RELATED -j ACCEPT",
                    drop->legacy ? "iptables-legacy" : "iptables",
                    drop->docker ? "DOCKER-USER" : "FORWARD",
                    drop->legacy ? "iptables-legacy" : "iptables",
                    drop->docker ? "DOCKER-USER" : "FORWARD");
    else
        finding_fix(f,
                    "nft insert rule %.60s %.60s iifname 'cellaup*' accept; nft insert rule %.60s "
                    "%.60s oifname 'cellaup*' ct state established,related accept",
                    drop->table, drop->chain, drop->table, drop->chain);
}

static void check_firewall(const char *data, struct finding *f)
{
    char program[] = "nft", verb[] = "list", what[] = "ruleset";
    char *argv[] = {program, verb, what, NULL};
    _cleanup_buf_ struct buf rules = BUF_INIT(RULES_MAX);
    struct forward_drop drop, legacy;
    if (!ask(argv, &rules)) {
        finding_set(f, FINDING_WARNING, "the rules of other programs cannot be seen");
        finding_fix(f, geteuid() == 0 ? "apt-get install nftables" : "sudo cella doctor");
        return;
    }
    bool drops = forward_drop_find(rules.data, &drop);
    if ((!drops || drop.excepted) && legacy_drops(&legacy)) {
        drop = legacy;
        drops = true;
    }
    if (!drops)
        finding_set(f, FINDING_OK, "none drops what is forwarded");
    else if (drop.excepted)
        finding_set(f, FINDING_OK, "%.60s %.60s drops what is forwarded, but for sandboxes",
                    drop.table, drop.chain);
    else {
        finding_set(f, FINDING_WARNING,
                    "%.60s %.60s drops what is forwarded: of sandboxes' networks only what the "
                    "egress process proxies works (names; ports 80 and 443 where names decide)",
                    drop.table, drop.chain);
        fix_drop(&drop, f);
    }
}

/* ---- ports ---- */

static void cleanup_file(FILE **file)
{
    if (*file != NULL)
        fclose(*file);
}

/* Local ports that somebody listens on, of those in between. */
static unsigned count_listeners(const char *path, long first, long last)
{
    enum { LISTEN = 0x0a };
    _cleanup_(cleanup_file) FILE *file = fopen(path, "re");
    char line[512];
    unsigned count = 0;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        /* "   0: 0100007F:7530 00000000:0000 0A …" */
        const char *colon = strchr(line, ':');
        const char *local = colon == NULL ? NULL : strchr(colon + 1, ':');
        const char *peer = local == NULL ? NULL : strchr(local + 1, ':');
        const char *state = peer == NULL ? NULL : strchr(peer, ' ');
        if (state == NULL || strtol(state, NULL, 16) != LISTEN)
            continue;
        long port = strtol(local + 1, NULL, 16);
        count += port >= first && port <= last;
    }
    return count;
}

static void check_ports(const char *data, struct finding *f)
{
    char text[64], *end;
    const char *range = strrchr(DEFAULT_PORTS, ':') + 1;
    long first = strtol(range, &end, 10), last = strtol(end + 1, NULL, 10);
    unsigned taken = count_listeners("/proc/net/tcp", first, last) +
                     count_listeners("/proc/net/tcp6", first, last);
    if (doctor_read("/proc/sys/net/ipv4/ip_local_port_range", text, sizeof(text))) {
        long low = strtol(text, &end, 10), high = strtol(end, NULL, 10);
        if (low <= last && high >= first) {
            finding_set(f, FINDING_WARNING,
                        "%s: the machine's own connections take theirs from %ld to %ld, so that "
                        "one may be gone when it is to be published",
                        DEFAULT_PORTS, low, high);
            finding_fix(f, "sysctl -w net.ipv4.ip_local_port_range='32768 60999', or cella server "
                           "--ports ADDRESS:FROM-TO");
            return;
        }
    }
    finding_set(f, FINDING_OK, "%s unless --ports says others; somebody listens on %u of them",
                DEFAULT_PORTS, taken);
}

const struct check_row doctor_network_checks[] = {
    {"other firewalls", check_firewall},
    {"published ports", check_ports},
    {NULL, NULL},
};
