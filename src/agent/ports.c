/* SPDX-License-Identifier: Apache-2.0 */

/* Listening sockets, from the kernel's own table of them. */

#include "agent/ports.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/connection.h"
#include "agent/process.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "wire/messages.h"

enum {
    ATTRIBUTE_CGROUP_ID = 21, /* INET_DIAG_CGROUP_ID: older headers do not have it */
    ANSWER_SIZE = 16 * 1024,
    INODES_MAX = 4096,
};

/* Whose sockets are meant. */
struct owner {
    uint64_t cgroup; /* 0: by inode */
    uint32_t *inodes;
    size_t count;
};

struct search {
    struct agent *agent;
    struct connection *connection;
    uint32_t id;
    struct owner owner;
    unsigned found;
};

/* --- without cgroups: the sockets that a session's members hold --- */

static bool is_member(const char *pid, pid_t session)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *rest = strrchr(text, ')'); /* what stands before may be anything */
    int of = 0;
    return rest != NULL && sscanf(rest, ") %*c %*d %*d %d", &of) == 1 && of == session;
}

static void collect_inodes(const char *pid, struct owner *owner)
{
    char path[64], target[64];
    snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
    _cleanup_dir_ DIR *dir = opendir(path);
    for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
        ssize_t n = readlinkat(dirfd(dir), d->d_name, target, sizeof(target) - 1);
        unsigned inode;
        if (n <= 0 || owner->count == INODES_MAX)
            continue;
        target[n] = '\0';
        if (sscanf(target, "socket:[%u]", &inode) == 1)
            owner->inodes[owner->count++] = inode;
    }
}

static int find_inodes(pid_t session, struct owner *owner, struct error *err)
{
    owner->inodes = malloc(INODES_MAX * sizeof(*owner->inodes));
    _cleanup_dir_ DIR *proc = opendir("/proc");
    if (owner->inodes == NULL || proc == NULL)
        return error_sys_as(err, ERROR_INTERNAL, "looking for the process's sockets");
    for (struct dirent *d; (d = readdir(proc)) != NULL;)
        if (d->d_name[0] >= '1' && d->d_name[0] <= '9' && is_member(d->d_name, session))
            collect_inodes(d->d_name, owner);
    return 0;
}

/* --- the kernel's answer --- */

static bool is_owned(const struct owner *owner, const struct inet_diag_msg *socket, size_t len)
{
    for (size_t i = 0; i < owner->count; i++)
        if (owner->inodes[i] == socket->idiag_inode)
            return true;
    if (owner->cgroup == 0)
        return false;
    int left = (int)(len - sizeof(*socket));
    for (const struct rtattr *a = (const struct rtattr *)(socket + 1); RTA_OK(a, left);
         a = RTA_NEXT(a, left)) {
        uint64_t cgroup;
        if (a->rta_type != ATTRIBUTE_CGROUP_ID || RTA_PAYLOAD(a) < sizeof(cgroup))
            continue;
        memcpy(&cgroup, RTA_DATA(a), sizeof(cgroup));
        return cgroup == owner->cgroup;
    }
    return false;
}

static void tell(struct search *search, const struct inet_diag_msg *socket, unsigned protocol)
{
    if (socket->id.idiag_sport == 0 || search->found++ >= PROCESS_PORTS_MAX)
        return;
    struct agent_port port = {
        .port = ntohs(socket->id.idiag_sport),
        .protocol = protocol == IPPROTO_TCP ? PORT_TCP : PORT_UDP,
        .address = {(const char *)socket->id.idiag_src, socket->idiag_family == AF_INET6 ? 16 : 4},
    };
    connection_answer(search->agent, search->connection, &agent_port_schema, search->id, &port);
}

/* One piece of a dump: 1 when it was the last, -1 on an error. */
static int take_piece(struct search *search, const char *piece, size_t size, unsigned protocol)
{
    uint32_t left = (uint32_t)size;
    for (const struct nlmsghdr *h = (const struct nlmsghdr *)piece; NLMSG_OK(h, left);
         h = NLMSG_NEXT(h, left)) {
        if (h->nlmsg_type == NLMSG_DONE)
            return 1;
        if (h->nlmsg_type == NLMSG_ERROR)
            return -1;
        const struct inet_diag_msg *socket = NLMSG_DATA(h);
        size_t len = h->nlmsg_len - NLMSG_HDRLEN;
        if (len >= sizeof(*socket) && is_owned(&search->owner, socket, len))
            tell(search, socket, protocol);
    }
    return 0;
}

static int dump(struct search *search, int fd, unsigned char family, unsigned char protocol)
{
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 body;
    } request = {
        .header = {.nlmsg_len = sizeof(request),
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .body = {.sdiag_family = family,
                 .sdiag_protocol = protocol,
                 .idiag_states = 1U << (protocol == IPPROTO_TCP ? TCP_LISTEN : TCP_CLOSE)},
    };
    if (send(fd, &request, sizeof(request), 0) < 0)
        return -1;
    _cleanup_free_ char *piece = malloc(ANSWER_SIZE);
    int last = piece == NULL ? -1 : 0;
    while (last == 0) {
        ssize_t n = recv(fd, piece, ANSWER_SIZE, 0);
        if (n < 0 && errno == EINTR)
            continue;
        last = n <= 0 ? -1 : take_piece(search, piece, (size_t)n, protocol);
    }
    return last < 0 ? -1 : 0;
}

static int find_owner(const struct process *process, struct owner *owner, struct error *err)
{
    struct stat st;
    if (process->tree.parent_fd < 0)
        return find_inodes(process->tree.leader, owner, err);
    /* The number of a cgroup is that of its directory. */
    if (process->tree.fd >= 0 && fstat(process->tree.fd, &st) == 0)
        owner->cgroup = st.st_ino;
    return 0;
}

int ports_answer(struct agent *agent, struct process *process, struct connection *connection,
                 uint32_t id, struct error *err)
{
    struct search search = {.agent = agent, .connection = connection, .id = id};
    if (find_owner(process, &search.owner, err) < 0) {
        free(search.owner.inodes);
        return -1;
    }
    _cleanup_fd_ int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    int rc = fd < 0 ? -1 : 0;
    static const unsigned char kinds[][2] = {
        {AF_INET, IPPROTO_TCP},
        {AF_INET6, IPPROTO_TCP},
        {AF_INET, IPPROTO_UDP},
        {AF_INET6, IPPROTO_UDP},
    };
    /* A kernel without IPv6 refuses two of them. */
    for (size_t i = 0; i < ARRAY_LEN(kinds) && rc == 0; i++)
        if (dump(&search, fd, kinds[i][0], kinds[i][1]) < 0 && kinds[i][0] == AF_INET)
            rc = -1;
    free(search.owner.inodes);
    if (rc < 0)
        return error_sys_as(err, ERROR_NOT_IMPLEMENTED, "asking the kernel for sockets");
    connection_answer(agent, connection, &wire_ok_schema, id, NULL);
    return 0;
}
