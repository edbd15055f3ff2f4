/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Why an id that nobody has: the machine's firewall keeps the egress process off private addresses
 * by its user, so that user must be nobody else, and another server's must not be the same: each
 * server's table holds what its own may reach, and a user of both would be held by both.
 */

#include "main/egress_child.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define RESOLV_CONF "/etc/resolv.conf"

enum {
    UID_BASE = 0x2fff0000, /* below the sandboxes' ranges, above what others hand out */
    UID_COUNT = 0xffff,
    SERVERS_MAX = 8,
    PORT_DNS = 53,
    WORD_MAX = 80,
};

void egress_user(const char *instance, uid_t *ret_uid, gid_t *ret_gid)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *c = instance; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    *ret_uid = *ret_gid = UID_BASE + hash % UID_COUNT;
}

/* ---- name servers ---- */

/* "10.0.0.2", "10.0.0.2:5353", "fd00::2", "[fd00::2]:5353" → address and port. */
static bool split_server(const char *text, size_t len, char address[INET6_ADDRSTRLEN],
                         unsigned *ret_port)
{
    char word[WORD_MAX], *host = word, *port = NULL, *end;
    unsigned char bytes[16];
    if (len == 0 || len >= sizeof(word))
        return false;
    memcpy(word, text, len);
    word[len] = '\0';
    char *zone = strchr(word, '%');
    if (zone != NULL)
        *zone = '\0';
    char *colon = strrchr(word, ':');
    if (word[0] == '[') {
        char *bracket = strchr(word, ']');
        if (bracket == NULL)
            return false;
        *bracket = '\0';
        host = word + 1;
        if (bracket[1] == ':')
            port = bracket + 2;
        else if (bracket[1] != '\0')
            return false;
    } else if (colon != NULL && strchr(word, ':') == colon) {
        *colon = '\0';
        port = colon + 1;
    }
    unsigned long number = port == NULL ? PORT_DNS : strtoul(port, &end, 10);
    if (port != NULL && (*port < '0' || *port > '9' || *end != '\0' || number > UINT16_MAX))
        return false;
    bool six = strchr(host, ':') != NULL;
    if (number == 0 || inet_pton(six ? AF_INET6 : AF_INET, host, bytes) != 1)
        return false;
    *ret_port = (unsigned)number;
    return inet_ntop(six ? AF_INET6 : AF_INET, bytes, address, INET6_ADDRSTRLEN) != NULL;
}

static bool add_server(char out[EGRESS_LIST_MAX], const char *text, size_t len)
{
    char address[INET6_ADDRSTRLEN];
    unsigned port;
    size_t used = strlen(out);
    if (!split_server(text, len, address, &port))
        return false;
    int n =
        snprintf(out + used, EGRESS_LIST_MAX - used, "%s%s#%u", used > 0 ? "," : "", address, port);
    return n > 0 && (size_t)n < EGRESS_LIST_MAX - used;
}

/* As resolv.conf(5) says; what is strange in it is left out. */
static void read_resolv_conf(char out[EGRESS_LIST_MAX])
{
    char line[256], address[WORD_MAX];
    FILE *file = fopen(RESOLV_CONF, "re");
    for (int count = 0; file != NULL && count < SERVERS_MAX && fgets(line, sizeof(line), file);)
        if (sscanf(line, " nameserver %79s", address) == 1 &&
            add_server(out, address, strlen(address)))
            count++;
    if (file != NULL)
        fclose(file);
}

int egress_resolvers(const char *list, char out[EGRESS_LIST_MAX], struct error *err)
{
    out[0] = '\0';
    if (list == NULL) {
        read_resolv_conf(out);
        return 0;
    }
    for (const char *at = list; *at != '\0';) {
        size_t len = strcspn(at, ",");
        if (!add_server(out, at, len))
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "--resolver: \"%.*s\" is not the address of a name server, such as "
                             "192.0.2.53 or [2001:db8::53]:5353",
                             len > 60 ? 60 : (int)len, at);
        at += len + (at[len] == ',');
    }
    return 0;
}

/* ---- the command line ---- */

static void add_list(struct command_line *line, const char *option, const char *name,
                     const char *list)
{
    for (const char *at = list; *at != '\0';) {
        size_t len = strcspn(at, ",");
        command_line_add(line, option, name);
        command_line_add_part(line, option, at, len);
        at += len + (at[len] == ',');
    }
}

int egress_command(const struct egress_settings *settings, struct command_line *line,
                   struct error *err)
{
    char number[16], path[32];
    command_line_begin(line, "cella-egress");
    snprintf(number, sizeof(number), "%d", EGRESS_FD_CONTROL);
    command_line_add_pair(line, "control socket", "--control-fd", number);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", EGRESS_FD_WARDEN);
    command_line_add_pair(line, "warden socket", "--warden", path);
    snprintf(number, sizeof(number), "%u", settings->cellad);
    command_line_add_pair(line, "--user", "--user", number);
    command_line_add_pair(line, "--log-level", "--log-level", settings->log_level);
    if (settings->has_ca) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", EGRESS_FD_CA);
        command_line_add_pair(line, "--egress-ca", "--ca", path);
    }
    add_list(line, "--resolver", "--resolver", settings->resolvers);
    add_list(line, "--network-allow-private", "--allow-private", settings->opened);
    return command_line_check(line, err);
}
