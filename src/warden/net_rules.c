/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Why the rules are text: they are read by people. They are loaded once, so that the 4 ms that the
 * program takes do not matter.
 *
 * The order of what happens to a packet of a sandbox: its mark by interface and source (none: it is
 * dropped before the kernel remembers anything of it), how many it sends; then, for the first
 * packet of a connection and for one of an older generation, its own rules; DNS and the proxies'
 * ports to the egress process; the rest to the uplink, if it may. TCP is refused by a reset: with
 * anything else a connection that is open would just hang.
 */

#include "warden/net_rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "network/address.h"
#include "warden/net_filter.h"

/* How much a sandbox sends, how fast it connects and how much it has open: both families together,
 * by its interface. */
#define LIMIT_PACKETS                                                                              \
    "update @pps { iif limit rate over 30000/second burst 10000 packets } counter drop;"
#define LIMIT_CONNECTS "update @cps { iif limit rate over 200/second burst 500 packets }"
#define LIMIT_OPEN     "add @conns { iif ct count over 512 }"

static const char *const nft_paths[] = {"/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft",
                                        "/usr/local/sbin/nft"};

struct address_text {
    char text[INET_ADDRSTRLEN];
};

static struct address_text ipv4(uint32_t address)
{
    struct address_text out;
    struct in_addr in = {.s_addr = htonl(address)};
    inet_ntop(AF_INET, &in, out.text, sizeof(out.text));
    return out;
}

bool rules_list_valid(const char *text)
{
    return text[strspn(text, "0123456789abcdefABCDEF.:/,#")] == '\0' && strlen(text) < 4096;
}

/* A set of those items of a list that are, or are not, IPv6: prefixes, or (servers) "address#port".
 */
static void add_set(struct buf *out, const char *name, bool ipv6, bool servers, const char *list)
{
    bool any = false;
    buf_addf(out, " set %s { type %s%s", name, ipv6 ? "ipv6_addr" : "ipv4_addr",
             servers ? " . inet_service;" : "; flags interval; auto-merge;");
    for (const char *at = list; *at != '\0';) {
        size_t len = strcspn(at, ",");
        if (len > 0 && (memchr(at, ':', len) != NULL) == ipv6) {
            size_t address = strcspn(at, ",#");
            buf_addf(out, "%s%.*s", any ? ", " : " elements = { ", (int)address, at);
            if (servers && address < len)
                buf_addf(out, " . %.*s", (int)(len - address - 1), at + address + 1);
            else if (servers)
                buf_adds(out, " . 53");
            any = true;
        }
        at += len + (at[len] == ',');
    }
    buf_adds(out, any ? " }; }\n" : " }\n");
}

/* Whether it is a part of one that may be opened, and is not opened with it. */
static bool is_kept_out(const struct net_range *range)
{
    for (size_t i = 0; !range->may_be_opened && i < net_range_count; i++)
        if (net_ranges[i].may_be_opened && net_prefix_within(&range->prefix, &net_ranges[i].prefix))
            return true;
    return false;
}

/* What is not the Internet, from the one table of it; or the part of it that nobody opens with the
 * range around it. */
static void add_ranges(struct buf *out, const char *name, enum net_family family, bool kept_out)
{
    const char *before = " elements = { ";
    char text[NET_PREFIX_TEXT];
    buf_addf(out, " set %s { type %s; flags interval; auto-merge;", name,
             family == NET_IPV6 ? "ipv6_addr" : "ipv4_addr");
    for (size_t i = 0; i < net_range_count; i++) {
        if (net_ranges[i].prefix.address.family != family ||
            (kept_out && !is_kept_out(&net_ranges[i])))
            continue;
        net_prefix_text(&net_ranges[i].prefix, text);
        buf_addf(out, "%s%s", before, text);
        before = ", ";
    }
    buf_adds(out, " }; }\n");
}

static void add_six_sets(const struct rules_setting *setting, struct buf *out)
{
    buf_adds(out, " map sb6 { type ifname . ipv6_addr : mark; }\n"
                  " set dyn6 { type mark . ipv6_addr . inet_proto . inet_service; flags timeout;"
                  " size 262144; }\n"
                  " set dyn6_all { type mark . ipv6_addr . inet_proto; flags timeout;"
                  " size 262144; }\n"
                  " set dyn6_range { type mark . ipv6_addr . inet_proto . inet_service;"
                  " flags interval,timeout; size 8192; }\n");
    add_ranges(out, "bad6", NET_IPV6, false);
    add_ranges(out, "never6", NET_IPV6, true);
    add_set(out, "opened6", true, false, setting->opened);
}

/*
 * What IPv4 has, mirrored; the chains that both share go here with what is IPv6. Beside that:
 * headers that say where else a packet should go, and messages between neighbours and routers, are
 * of no use here and are dropped before anything reads them.
 */
static void add_six(const struct rules_setting *setting, struct buf *out)
{
    char gateway[SIX_TEXT], range[SIX_TEXT];
    if (setting->six == NULL) {
        buf_adds(out, " chain raw_sb6 { drop; }\n chain nat_pre6 { }\n chain in_sb6 { drop; }\n"
                      " chain fwd_sb6 { drop; }\n chain nat_post6 { }\n");
        return;
    }
    six_text(&setting->six->gateway, gateway);
    six_text(&setting->six->range, range);
    add_six_sets(setting, out);
    buf_adds(out, " chain raw_sb6 { meta mark set 0\n"
                  "  exthdr hbh exists drop; exthdr rt exists drop; exthdr dst exists drop;"
                  " exthdr mh exists drop\n"
                  "  meta l4proto ipv6-icmp icmpv6 type != { echo-request, destination-unreachable,"
                  " packet-too-big, time-exceeded, parameter-problem } drop\n"
                  "  meta mark set iifname . ip6 saddr map @sb6; meta mark 0 counter drop\n"
                  "  " LIMIT_PACKETS " }\n");
    buf_addf(out,
             " chain nat_pre6 { meta l4proto { tcp, udp } th dport 53 dnat ip6 to [%s]:%d\n"
             "  meta mark & 0x1c != 0x4 return; ip6 daddr @never6 return\n"
             "  ip6 daddr != @bad6 tcp dport 80 dnat ip6 to [%s]:%d\n"
             "  ip6 daddr != @bad6 tcp dport 443 dnat ip6 to [%s]:%d\n"
             "  ip6 daddr @opened6 tcp dport 80 dnat ip6 to [%s]:%d\n"
             "  ip6 daddr @opened6 tcp dport 443 dnat ip6 to [%s]:%d; }\n"
             " chain in_sb6 { ip6 daddr != %s drop; udp dport %d accept\n"
             "  tcp dport { %d, %d, %d } accept; drop; }\n",
             gateway, NET_PORT_DNS, gateway, NET_PORT_HTTP, gateway, NET_PORT_TLS, gateway,
             NET_PORT_HTTP, gateway, NET_PORT_TLS, gateway, NET_PORT_DNS, NET_PORT_DNS,
             NET_PORT_HTTP, NET_PORT_TLS);
    buf_addf(out,
             " chain fwd_sb6 { ip6 daddr @never6 goto deny\n"
             "  meta mark & 0x3 == 1 ip6 daddr @bad6 goto deny\n"
             "  ip6 daddr @bad6 ip6 daddr != @opened6 goto deny\n"
             "  meta mark & 0x3 == { 1, 3 } goto admit\n"
             "  meta mark & 0x8 != 0 goto admit\n"
             "  meta mark & 0xffffff00 . ip6 daddr . meta l4proto @dyn6_all goto admit\n"
             "  meta mark & 0xffffff00 . ip6 daddr . meta l4proto . th dport @dyn6 goto admit\n"
             "  meta mark & 0xffffff00 . ip6 daddr . meta l4proto . th dport @dyn6_range"
             " goto admit\n"
             "  goto deny; }\n"
             " chain nat_post6 { ip6 saddr %s/%u masquerade; }\n",
             range, setting->six->range_bits);
}

/* What becomes of what is not let through. A sandbox that is refused all the time is heard of a few
 * times a second; by its interface, which it cannot choose, and not by an address. */
static void add_refusing(const struct rules_setting *setting, struct buf *out)
{
    static const struct {
        const char *chain, *prefix, *end;
    } rows[] = {
        {"deny", "deny", "goto refuse"},
        {"many", "limit", "goto refuse"},
        {"flood", "limit", "counter drop"},
    };
    buf_adds(out,
             " set told { type iface_index; flags dynamic,timeout; timeout 10s; size 65536; }\n"
             " chain refuse { counter; meta l4proto tcp reject with tcp reset;"
             " reject with icmpx admin-prohibited; }\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        buf_addf(out, " chain %s { ", rows[i].chain);
        if (setting->told)
            buf_addf(out,
                     "update @told { iif limit rate 10/second burst 40 packets }"
                     " log prefix \"%s\" group %d\n  ",
                     rows[i].prefix, NET_REFUSALS_GROUP);
        buf_addf(out, "%s; }\n", rows[i].end);
    }
}

static void add_sets(const struct rules_setting *setting, struct buf *out)
{
    buf_adds(out, "table inet " NET_TABLE "\ndelete table inet " NET_TABLE "\ntable inet " NET_TABLE
                  " {\n"
                  " map sb { type ifname . ipv4_addr : mark; }\n"
                  " set live { type mark; }\n"
                  " map own { type ifname : verdict; }\n"
                  " set dyn { type mark . ipv4_addr . inet_proto . inet_service; flags timeout;"
                  " size 262144; }\n"
                  " set dyn_all { type mark . ipv4_addr . inet_proto; flags timeout;"
                  " size 262144; }\n"
                  " set dyn_range { type mark . ipv4_addr . inet_proto . inet_service;"
                  " flags interval,timeout; size 8192; }\n");
    add_ranges(out, "bad", NET_IPV4, false);
    add_set(out, "opened", false, false, setting->opened);
    buf_adds(out,
             " set pps { type iface_index; flags dynamic,timeout; timeout 10s; size 65536; }\n"
             " set cps { type iface_index; flags dynamic,timeout; timeout 10s; size 65536; }\n"
             " set dnsq { type iface_index; flags dynamic,timeout; timeout 10s; size 65536; }\n"
             " set conns { type iface_index; flags dynamic; size 65536; }\n");
}

static void add_admit(const struct rules_setting *setting, struct buf *out)
{
    buf_addf(out,
             " chain admit { ct state new " LIMIT_CONNECTS " goto flood\n"
             "  ct state new " LIMIT_OPEN " goto many\n"
             "  ct mark set meta mark & 0xffffff00%s; accept; }\n",
             setting->told ? "; ct event set new,destroy,protoinfo" : "");
}

/* Who it is by where it comes from, and whether its connection is still one of its policy. */
static void add_marking(struct buf *out)
{
    buf_adds(out, " chain raw_sb { meta nfproto ipv6 goto raw_sb6; meta mark set 0;"
                  " meta mark set iifname . ip saddr map @sb; meta mark 0 counter drop;"
                  " " LIMIT_PACKETS " }\n"
                  " chain pre_raw { type filter hook prerouting priority raw; policy accept;"
                  " iifname \"cv*\" jump raw_sb; }\n"
                  " chain judge_sb { ct mark & 0xffffff00 @live return; iifname vmap @own; }\n"
                  " chain judge { type filter hook prerouting priority mangle; policy accept;"
                  " iifname \"cv*\" jump judge_sb; }\n");
}

/* DNS and the web, to the egress process. */
static void add_turning(const struct rules_setting *setting, struct buf *out)
{
    const struct address_text gateway = ipv4(setting->gateway);
    /* Rules of its own that allow an address lead there directly, also to a web server. */
    buf_addf(out,
             " chain nat_pre { type nat hook prerouting priority dstnat; policy accept;\n"
             "  iifname \"cv*\" meta nfproto ipv6 goto nat_pre6\n"
             "  iifname \"cv*\" meta l4proto { tcp, udp } th dport 53 dnat ip to %s:%d\n"
             "  iifname \"cv*\" meta mark & 0x1c == 0x4 ip daddr != @bad tcp dport 80"
             " dnat ip to %s:%d\n"
             "  iifname \"cv*\" meta mark & 0x1c == 0x4 ip daddr != @bad tcp dport 443"
             " dnat ip to %s:%d\n"
             "  iifname \"cv*\" meta mark & 0x1c == 0x4 ip daddr @opened tcp dport 80"
             " dnat ip to %s:%d\n"
             "  iifname \"cv*\" meta mark & 0x1c == 0x4 ip daddr @opened tcp dport 443"
             " dnat ip to %s:%d\n"
             " }\n",
             gateway.text, NET_PORT_DNS, gateway.text, NET_PORT_HTTP, gateway.text, NET_PORT_TLS,
             gateway.text, NET_PORT_HTTP, gateway.text, NET_PORT_TLS);
}

/* What the egress process listens for, and nothing else in here. */
static void add_input(const struct rules_setting *setting, struct buf *out)
{
    const struct address_text gateway = ipv4(setting->gateway);
    buf_addf(out,
             " chain in_sb { ct state invalid drop\n"
             "  udp dport %d update @dnsq { iif limit rate over 100/second burst 200 packets }"
             " counter drop\n"
             "  ct state established accept; ct status & dnat == 0 goto deny\n"
             "  ct state new " LIMIT_CONNECTS " counter drop\n"
             "  meta l4proto tcp " LIMIT_OPEN " goto refuse\n"
             "  meta nfproto ipv6 goto in_sb6\n"
             "  ip daddr %s udp dport %d accept; ip daddr %s tcp dport { %d, %d, %d } accept; drop;"
             " }\n"
             " chain inp { type filter hook input priority filter; policy drop;"
             " iifname \"cv*\" jump in_sb; }\n",
             NET_PORT_DNS, gateway.text, NET_PORT_DNS, gateway.text, NET_PORT_DNS, NET_PORT_HTTP,
             NET_PORT_TLS);
}

/* What passes through, each way. */
static void add_forward(struct buf *out)
{
    buf_adds(out,
             " chain fwd_sb { ct state invalid drop; oifname != \"up0\" goto deny\n"
             "  ct state { established, related } ct mark & 0xffffff00 @live accept\n"
             "  meta mark & 0x10 != 0 goto deny\n"
             /* Where names decide, QUIC would hide them; and what went to the web directly, before
              * the policy was one about names, has to come again by way of the proxies. */
             "  meta mark & 0xc == 0x4 udp dport 443 goto deny\n"
             "  meta mark & 0xc == 0x4 tcp dport { 80, 443 } goto deny\n"
             "  meta nfproto ipv6 goto fwd_sb6\n"
             "  meta mark & 0x3 == 1 ip daddr @bad goto deny\n"
             "  ip daddr @bad ip daddr != @opened goto deny\n"
             "  meta mark & 0x3 == { 1, 3 } goto admit\n"
             "  meta mark & 0x8 != 0 goto admit\n"
             "  meta mark & 0xffffff00 . ip daddr . meta l4proto @dyn_all goto admit\n"
             "  meta mark & 0xffffff00 . ip daddr . meta l4proto . th dport @dyn goto admit\n"
             "  meta mark & 0xffffff00 . ip daddr . meta l4proto . th dport @dyn_range goto admit\n"
             "  goto deny; }\n"
             " chain to_sb { iifname \"up0\" ct state { established, related }"
             " ct mark & 0xffffff00 @live accept\n"
             /* Of an older policy: what it has the sandbox send is judged, and refused by a reset;
              * dropped here, one that only receives would wait for ever, allowed or not. */
             "  iifname \"up0\" meta l4proto tcp ct state established accept; counter drop; }\n"
             " chain forw { type filter hook forward priority filter; policy drop;"
             " iifname \"cv*\" goto fwd_sb; oifname \"cv*\" goto to_sb; }\n"
             /* Sockets in here answer sandboxes; nothing in here calls anybody. */
             " chain outp { type filter hook output priority filter; policy drop;"
             " oifname \"cv*\" accept; }\n");
}

static void add_leaving(const struct rules_setting *setting, struct buf *out)
{
    const struct address_text range = ipv4(setting->range);
    buf_addf(out,
             " chain nat_post { type nat hook postrouting priority srcnat; policy accept;"
             " oifname \"up0\" ip saddr %s/%u masquerade\n"
             "  oifname \"up0\" meta nfproto ipv6 goto nat_post6; }\n}\n",
             range.text, setting->range_bits);
}

/* A chain stands before those that lead to it. */
void rules_router(const struct rules_setting *setting, struct buf *out)
{
    add_sets(setting, out);
    add_refusing(setting, out);
    add_admit(setting, out);
    add_six(setting, out);
    add_marking(out);
    add_turning(setting, out);
    add_input(setting, out);
    add_forward(out);
    add_leaving(setting, out);
}

/* The egress process connects from here itself. It checks every address, too. */
static void add_egress(const struct rules_setting *setting, struct buf *out)
{
    if (setting->egress == 0)
        return;
    buf_addf(out,
             " chain egress { ip daddr . th dport @resolvers4 accept\n"
             "  ip6 daddr . th dport @resolvers6 accept\n"
             "  oifname \"lo\" ct state established accept\n"
             "  fib daddr type { local, broadcast, multicast } goto deny\n"
             "  ip6 daddr @never6 goto deny\n"
             "  ip daddr @opened4 accept; ip6 daddr @opened6 accept\n"
             "  ip daddr @bad goto deny; ip6 daddr @bad6 goto deny; }\n"
             " chain outp { type filter hook output priority filter; policy accept;"
             " meta skuid %u goto egress; }\n",
             setting->egress);
}

void rules_machine(const struct rules_setting *setting, struct buf *out)
{
    const struct address_text near = ipv4(setting->uplink_near);
    char near6[SIX_TEXT] = "::"; /* nobody's */
    if (setting->six != NULL)
        six_text(&setting->six->uplink_near, near6);
    const char *instance = setting->instance, *uplink = setting->uplink;
    buf_addf(out, "table inet cella_%s\ndelete table inet cella_%s\ntable inet cella_%s {\n",
             instance, instance, instance);
    add_ranges(out, "bad", NET_IPV4, false);
    add_ranges(out, "bad6", NET_IPV6, false);
    add_ranges(out, "never6", NET_IPV6, true);
    add_set(out, "opened4", false, false, setting->opened);
    add_set(out, "opened6", true, false, setting->opened);
    add_set(out, "resolvers4", false, true, setting->resolvers);
    add_set(out, "resolvers6", true, true, setting->resolvers);
    buf_adds(out, " chain deny { meta l4proto tcp reject with tcp reset;"
                  " reject with icmpx admin-prohibited; }\n");
    /* Before other programs' redirections of the machine's own addresses. */
    buf_addf(out,
             " chain pre { type filter hook prerouting priority mangle; policy accept;"
             " iifname \"%s\" jump from_router; }\n"
             " chain from_router { ip saddr != %s drop; ip6 saddr != %s drop\n"
             "  ct state established return\n"
             "  fib daddr type != unicast goto deny\n"
             "  ip daddr @bad ip daddr != @opened4 goto deny; ip6 daddr @never6 goto deny\n"
             "  ip6 daddr @bad6 ip6 daddr != @opened6 goto deny; }\n"
             " chain inp { type filter hook input priority filter; policy accept;"
             " iifname \"%s\" drop; }\n"
             " chain forw { type filter hook forward priority filter; policy accept;\n"
             "  oifname \"%s\" ct state != { established, related } drop\n"
             "  iifname \"%s\" tcp flags & (syn | rst) == syn tcp option maxseg size set rt mtu;"
             " }\n"
             " chain nat_post { type nat hook postrouting priority srcnat; policy accept;"
             " ip saddr %s oifname != \"%s\" masquerade; ip6 saddr %s oifname != \"%s\""
             " masquerade; }\n",
             uplink, near.text, near6, uplink, uplink, uplink, near.text, uplink, near6, uplink);
    add_egress(setting, out);
    buf_adds(out, "}\n");
}

void rules_machine_remove(const char *instance, struct buf *out)
{
    buf_addf(out, "table inet cella_%s\ndelete table inet cella_%s\n", instance, instance);
}

/* ---- the program ---- */

static const char *find_nft(void)
{
    for (size_t i = 0; i < ARRAY_LEN(nft_paths); i++)
        if (access(nft_paths[i], X_OK) == 0)
            return nft_paths[i];
    return NULL;
}

static _Noreturn void run_nft(const char *program, int network_namespace, int from, int to)
{
    const char *const argv[] = {"nft", "-f", "-", NULL};
    const char *const envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setns(network_namespace, CLONE_NEWNET) == 0 && dup2(from, STDIN_FILENO) >= 0 &&
        dup2(to, STDOUT_FILENO) >= 0 && dup2(to, STDERR_FILENO) >= 0)
        execve(program, (char *const *)argv, (char *const *)envp);
    dprintf(to, "%s: %s", program, strerror(errno));
    _exit(127);
}

/* A file that the child reads: a pipe could fill up. */
static int text_file(const struct buf *text, int *ret_fd, struct error *err)
{
    _cleanup_fd_ int fd = memfd_create("rules", MFD_CLOEXEC);
    if (fd < 0 || write(fd, text->data, text->len) != (ssize_t)text->len ||
        lseek(fd, 0, SEEK_SET) != 0)
        return error_sys(err, "writing rules for nft");
    *ret_fd = steal_fd(&fd);
    return 0;
}

int rules_load(int network_namespace, const struct buf *text, struct error *err)
{
    const char *program = find_nft();
    char said[200] = "";
    int ends[2], status;
    _cleanup_fd_ int from = -1;
    if (program == NULL)
        return error_set(err, ERROR_UNAVAILABLE,
                         "there is no nft program (Debian: apt-get install nftables)");
    if (buf_check(text, "the rules", err) < 0 || text_file(text, &from, err) < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "making a pipe");
    _cleanup_fd_ int reading = ends[0];
    pid_t pid = fork();
    if (pid == 0)
        run_nft(program, network_namespace, from, ends[1]);
    close(ends[1]);
    if (pid < 0)
        return error_sys(err, "starting nft");
    size_t len = 0;
    ssize_t n;
    char rest[256];
    while ((n = read(reading, rest, sizeof(rest))) > 0 || (n < 0 && errno == EINTR))
        for (ssize_t i = 0; i < n && len < sizeof(said) - 1; i++)
            said[len++] = rest[i];
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    said[strcspn(said, "\n")] = '\0';
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return error_set(err, ERROR_UNAVAILABLE, "nft refuses the rules: %s", said);
    return 0;
}
