/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella server`: a small root process that starts the warden, cellad and the egress process,
 * starts each again when it dies, and ends all when it is told to. It owns the listening sockets,
 * so that clients wait in a queue and are not refused while cellad is being restarted, and is the
 * subreaper, so that a sandbox whose warden was killed still has somebody to reap it.
 *
 * The children die with it (PR_SET_PDEATHSIG) and share its lock on the data folder, so that the
 * next server never overlaps what is left of this one. Sandboxes go on through all of that.
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "base/log.h"
#include "base/program.h"
#include "base/runtime.h"
#include "cli/cli.h"
#include "confine/view.h"
#include "loop/net.h"
#include "main/cellad.h"
#include "main/commands.h"
#include "main/datadir.h"
#include "main/egress_child.h"
#include "main/jwt_files.h"
#include "main/options.h"
#include "main/server_group.h"
#include "main/tls_files.h"
#include "wire/farewell.h"

enum {
    LISTEN_BACKLOG = 1024,
    WARDEN_BACKLOG = 16,
    WARDEN_FD_LISTEN = 3,
    WARDEN_FD_EGRESS = 4,
    FD_LOCK = 9,
    FDS_MAX = 9,
    FD_SAFE = 20, /* descriptors are moved up here before they are put into place */
    BACKOFF_FIRST_MS = 50,
    BACKOFF_MAX_MS = 5000,
    HEALTHY_MS = 10 * 1000,
    CELLAD_STOP_MS = 45 * 1000,
    WARDEN_STOP_MS = 60 * 1000,
    EGRESS_STOP_MS = 5 * 1000,
    CERTIFICATE_LOOK_MS = 60 * 60 * 1000,
};

struct supervisor;

struct child {
    const char *name;
    int (*exec)(struct supervisor *s); /* in the child; returns only on failure */
    pid_t pid;                         /* 0: not running */
    int64_t started_ms;
    int64_t restart_at_ms; /* while it is not running */
    int backoff_ms;
};

struct supervisor {
    struct server_options options;
    struct datadir dir;
    uid_t uid;
    gid_t gid;
    char url[300];
    char warden_path[PATH_MAX];
    char agent_path[PATH_MAX];
    char egress_path[PATH_MAX];
    bool network; /* sandboxes may have one, and the egress process runs */
    uid_t egress_uid;
    gid_t egress_gid;
    char resolvers[EGRESS_LIST_MAX]; /* for the warden's rules */
    int http_fd;
    int metrics_fd; /* of --metrics-listen; -1: none */
    int unix_fd;    /* the same on a unix socket */
    int warden_fd;
    int warden_egress_fd; /* where the warden takes the egress process's requests */
    int egress_fd;        /* where that one takes cellad's */
    int ca_fd;            /* its file of certificate authorities; -1: this machine's */
    int tls_fd;           /* certificate and key for cellad; empty: none */
    int jwt_fd;           /* whose tokens it trusts; empty: nobody's */
    int ready_fd;         /* read end */
    int ready_write_fd;   /* for the child; closed here after each fork */
    int signal_fd;
    struct server_group cellad_group, egress_group; /* of memory */
    struct child warden;
    struct child cellad;
    struct child egress;
    int64_t certificate_at_ms; /* when to look whether it is to be renewed */
    dev_t agents_dev;          /* of the folder of sandboxes' sockets that cellad sees */
    bool made_runtime;         /* it was not there before */
    bool has_terminal;         /* whose end is ours */
    bool announced;
    bool asked;  /* to end */
    bool failed; /* to start */
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* For tests, where there are no privileges: a program in the warden's place, whose sandboxes need
 * none. As root, where a warden can work, it is not looked at. NULL: there is none. */
static const char *test_warden(void)
{
    const char *program = geteuid() == 0 ? NULL : getenv("CELLA_TEST_WARDEN");
    return program == NULL || program[0] == '\0' ? NULL : program;
}

/* --- children --- */

/* Puts descriptors into their places. All of them are moved out of the way first: a place may be
 * taken by another one of the list. */
static int place_fds(int count, const int from[], const int to[])
{
    int moved[FDS_MAX];
    for (int i = 0; i < count; i++) {
        moved[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FD_SAFE);
        if (moved[i] < 0)
            return -1;
    }
    for (int i = 0; i < count; i++)
        if (dup2(moved[i], to[i]) < 0)
            return -1;
    return 0;
}

static struct command_inputs command_inputs(const struct supervisor *s)
{
    return (struct command_inputs){
        .options = &s->options,
        .data = s->dir.path,
        .agent = s->agent_path,
        .uid = s->uid,
        .gid = s->gid,
        .network = s->network,
        .egress_uid = s->egress_uid,
        .resolvers = s->resolvers,
    };
}

/* Says why there is no command line. What one is made of was checked at the start of the server. */
static int log_failure(const struct error *err)
{
    log_error("%s", err->message);
    errno = EINVAL;
    return -1;
}

static int exec_warden(struct supervisor *s)
{
    struct command_line line;
    struct error err;
    const int from[] = {s->warden_fd, s->dir.lock_fd, s->warden_egress_fd};
    const int to[] = {WARDEN_FD_LISTEN, FD_LOCK, WARDEN_FD_EGRESS};
    const struct command_inputs in = command_inputs(s);
    if (warden_command(&in, &line, &err) < 0)
        return log_failure(&err);
    if (place_fds(s->network ? 3 : 2, from, to) < 0)
        return -1;
    execv(s->warden_path, (char **)line.argv);
    return -1;
}

static int drop_privileges(uid_t uid, gid_t gid)
{
    bool ours = test_warden() != NULL;
    if (!ours &&
        (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0))
        return -1;
    /* A change of ids clears the death signal. */
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -1
                                                                                              : 0;
}

/* A pipe with the hash of the first key in it, and the key of secrets. */
static int open_key_pipe(const struct supervisor *s)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    bool whole = write(fds[1], s->dir.key_hash, CELLAD_KEY_LEN) == CELLAD_KEY_LEN &&
                 write(fds[1], s->dir.secret_key, CELLAD_KEY_LEN) == CELLAD_KEY_LEN;
    close(fds[1]);
    return whole ? fds[0] : -1;
}

/* What it is told before it listens to signals is not lost: it reads it later. */
static void hold_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SERVER_KEEP);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Gives a child, which is still root, a file system of its own. folder: what it works in, or NULL.
 */
static int enter_view(const char *folder)
{
    static const char *const parts[] = {LAYOUT_DB_DIR, LAYOUT_HISTORY, LAYOUT_AUDIT, LAYOUT_AGENTS,
                                        NULL};
    const struct view view = {.folder = folder, .parts = parts};
    struct error err;
    if (test_warden() != NULL || view_enter(&view, &err) == 0)
        return 0;
    log_error("making its view of the file system: %s", err.message);
    return -1;
}

/* Opens the data folder again inside the view: the earlier descriptor leads out of it. */
static int reopen_data(const struct supervisor *s)
{
    if (test_warden() != NULL)
        return 0;
    _cleanup_fd_ int fd = open(s->dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || dup2(fd, CELLAD_FD_DATA) < 0 ? -1 : 0;
}

/* Opens a program before entering a view, in which it has no path. */
static int open_program(const char *path)
{
    _cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FD_SAFE);
}

static int exec_cellad(struct supervisor *s)
{
    struct command_line line;
    struct error err;
    const struct command_inputs in = command_inputs(s);
    hold_signals();
    if (cellad_command(&in, &line, &err) < 0)
        return log_failure(&err);
    if (server_group_enter(&s->cellad_group) < 0)
        log_warn("cellad runs outside of its cgroup: %m");
    const int from[FDS_MAX] = {s->dir.fd,  s->http_fd,     s->ready_write_fd,
                               s->unix_fd, s->dir.lock_fd, open_key_pipe(s),
                               s->tls_fd,  s->jwt_fd,      s->metrics_fd};
    const int to[FDS_MAX] = {CELLAD_FD_DATA, CELLAD_FD_LISTEN, CELLAD_FD_READY,
                             CELLAD_FD_UNIX, FD_LOCK,          CELLAD_FD_KEY,
                             CELLAD_FD_TLS,  CELLAD_FD_JWT,    CELLAD_FD_METRICS};
    _cleanup_fd_ int program = open_program("/proc/self/exe");
    if (program < 0 || place_fds(s->metrics_fd < 0 ? FDS_MAX - 1 : FDS_MAX, from, to) < 0 ||
        enter_view(s->dir.path) < 0 || reopen_data(s) < 0 || drop_privileges(s->uid, s->gid) < 0)
        return -1;
    execveat(program, "", (char **)line.argv, environ, AT_EMPTY_PATH);
    return -1;
}

static struct egress_settings egress_settings(const struct supervisor *s)
{
    return (struct egress_settings){
        .uid = s->egress_uid,
        .gid = s->egress_gid,
        .cellad = s->uid,
        .resolvers = s->options.resolver != NULL ? s->options.resolver : "",
        .opened = s->options.network_private != NULL ? s->options.network_private : "",
        .log_level = s->options.log_level,
        .has_ca = s->ca_fd >= 0,
    };
}

/* Its last words, should it not start, are its own. */
static int exec_egress(struct supervisor *s)
{
    struct command_line line;
    struct error err;
    const struct egress_settings settings = egress_settings(s);
    _cleanup_fd_ int socket_file =
        openat(s->dir.fd, LAYOUT_WARDEN_EGRESS_SOCK, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_fd_ int program = open_program(s->egress_path);
    if (server_group_enter(&s->egress_group) < 0)
        log_warn("egress runs outside of its cgroup: %m");
    const int from[] = {s->egress_fd, socket_file, s->dir.lock_fd, s->ca_fd};
    const int to[] = {EGRESS_FD_CONTROL, EGRESS_FD_WARDEN, FD_LOCK, EGRESS_FD_CA};
    if (egress_command(&settings, &line, &err) < 0)
        return log_failure(&err);
    if (socket_file < 0 || program < 0 || place_fds(settings.has_ca ? 4 : 3, from, to) < 0 ||
        enter_view(NULL) < 0 || drop_privileges(s->egress_uid, s->egress_gid) < 0)
        return -1;
    execveat(program, "", (char **)line.argv, environ, AT_EMPTY_PATH);
    return -1;
}

static int open_ready_pipe(struct supervisor *s, struct error *err)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return error_sys(err, "making a pipe");
    if (s->ready_fd >= 0)
        close(s->ready_fd);
    s->ready_fd = fds[0];
    s->ready_write_fd = fds[1];
    return 0;
}

/* Mounts the folders of sockets and records before a child starts: cellad's view contains only what
 * is mounted by then. A warden that shuts down in order unmounts them. cellad still sees the old
 * ones then, so it is restarted along with the warden. */
static int mount_runtime(struct supervisor *s, struct error *err)
{
    char path[PATH_MAX + 16];
    struct stat st;
    bool made;
    if (test_warden() != NULL)
        return 0;
    if (runtime_mount(s->dir.path, &made, err) < 0)
        return -1;
    s->made_runtime |= made;
    snprintf(path, sizeof(path), "%s/%s", s->dir.path, LAYOUT_AGENTS);
    if (stat(path, &st) < 0)
        return error_sys(err, "looking at %s", path);
    if (st.st_dev != s->agents_dev && s->cellad.pid > 0) {
        log_info("restarting cellad: the folder of sandboxes' sockets was mounted anew");
        kill(s->cellad.pid, SIGKILL);
    }
    s->agents_dev = st.st_dev;
    return 0;
}

static int start_child(struct supervisor *s, struct child *child, struct error *err)
{
    pid_t parent = getpid();
    if (child != &s->egress && mount_runtime(s, err) < 0)
        return -1;
    if (child == &s->cellad && open_ready_pipe(s, err) < 0)
        return -1;
    pid_t pid = fork();
    if (pid < 0)
        return error_sys(err, "starting %s", child->name);
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        /* A session of its own: an interrupt from the terminal is for the supervisor alone. */
        setsid();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            child->exec(s);
        log_error("starting %s: %s", child->name, strerror(errno));
        _exit(127);
    }
    if (child == &s->cellad)
        close(steal_fd(&s->ready_write_fd));
    child->pid = pid;
    child->started_ms = now_ms();
    return 0;
}

static void describe_exit(const struct child *child, int status)
{
    if (WIFSIGNALED(status))
        log_warn("%s (pid %d) was ended by signal %d (%s)", child->name, child->pid,
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        log_warn("%s (pid %d) ended with status %d", child->name, child->pid, WEXITSTATUS(status));
}

static void write_server_file(const struct supervisor *s)
{
    char text[512];
    struct error err;
    snprintf(text, sizeof(text), "%d\n%d\n%d\n%s\n%d\n", getpid(), s->warden.pid, s->cellad.pid,
             s->url, s->egress.pid);
    int r = datadir_write(&s->dir, LAYOUT_SERVER, text, 0644, &err);
    if (r < 0 && err.code == ERROR_QUOTA_EXCEEDED)
        r = datadir_overwrite(&s->dir, LAYOUT_SERVER, text, &err);
    if (r < 0)
        log_warn("%s", err.message);
}

/* A child that ends before the server was ever ready, without being told to, cannot do its job
 * here: its own last words say why, and trying again would only repeat them. */
static void child_ended(struct supervisor *s, struct child *child, int status)
{
    describe_exit(child, status);
    child->pid = 0;
    /* Without it sandboxes resolve no names, which is no reason not to serve at all. */
    if (child != &s->egress && !s->announced && !s->asked && !WIFSIGNALED(status)) {
        s->failed = true;
        return;
    }
    bool healthy = now_ms() - child->started_ms > HEALTHY_MS;
    if (healthy || child->backoff_ms == 0)
        child->backoff_ms = BACKOFF_FIRST_MS;
    else if (child->backoff_ms < BACKOFF_MAX_MS)
        child->backoff_ms *= 2;
    child->restart_at_ms = now_ms() + (healthy ? 0 : child->backoff_ms);
}

/* Reaps whatever ended: our three, and orphans of a warden that was killed. */
static void reap(struct supervisor *s)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == s->warden.pid)
            child_ended(s, &s->warden, status);
        else if (pid == s->cellad.pid)
            child_ended(s, &s->cellad, status);
        else if (pid == s->egress.pid)
            child_ended(s, &s->egress, status);
    }
}

static void restart_due(struct supervisor *s)
{
    struct child *children[] = {&s->warden, &s->cellad, &s->egress};
    struct error err;
    for (size_t i = 0; i < ARRAY_LEN(children); i++) {
        struct child *child = children[i];
        if (child == &s->egress && !s->network)
            continue;
        if (child->pid != 0 || now_ms() < child->restart_at_ms)
            continue;
        if (start_child(s, child, &err) < 0) {
            log_error("%s", err.message);
            child->restart_at_ms = now_ms() + BACKOFF_MAX_MS;
            continue;
        }
        log_info("started %s again (pid %d)", child->name, child->pid);
        write_server_file(s);
    }
}

static int next_wakeup_ms(const struct supervisor *s)
{
    const struct child *children[] = {&s->warden, &s->cellad, &s->egress};
    int64_t wait = s->certificate_at_ms - now_ms();
    if (wait < 0)
        wait = 0;
    for (size_t i = 0; i < ARRAY_LEN(children); i++) {
        if (children[i]->pid != 0 || (children[i] == &s->egress && !s->network))
            continue;
        int64_t left = children[i]->restart_at_ms - now_ms();
        if (left < 0)
            left = 0;
        if (left < wait)
            wait = left;
    }
    return (int)wait;
}

/* --- the certificate, and whose tokens are trusted --- */

static void renew_files(struct supervisor *s)
{
    struct error err;
    s->certificate_at_ms = now_ms() + CERTIFICATE_LOOK_MS;
    int tls = tls_files_renew(&s->dir, &s->options, s->tls_fd, &err);
    if (tls < 0)
        log_error("the TLS certificate stays as it is: %s", err.message);
    int jwt = jwt_files_renew(s->options.jwt_config, s->jwt_fd, &err);
    if (jwt < 0)
        log_error("whose tokens are trusted stays as it is: %s", err.message);
    if ((tls > 0 || jwt > 0) && s->cellad.pid > 0)
        kill(s->cellad.pid, SIGHUP);
}

static bool terminal_is_there(void)
{
    _cleanup_fd_ int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return fd >= 0;
}

/* SIGHUP asks for these files to be looked at again; or it tells, as ever, that the terminal
 * has gone that the server was started from. Returns whether it was that. */
static bool hang_up(struct supervisor *s)
{
    if (s->has_terminal && !terminal_is_there())
        return true;
    if (s->announced) /* else it has just been read */
        renew_files(s);
    return false;
}

/* --- set-up --- */

static int find_user(struct supervisor *s, struct error *err)
{
    if (test_warden() != NULL) {
        s->uid = geteuid();
        s->gid = getegid();
        return 0;
    }
    errno = 0;
    const struct passwd *pw = getpwnam(s->options.user);
    if (pw == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "there is no user \"%s\" for the server to run as: make it with `useradd "
                         "--system --no-create-home --shell /usr/sbin/nologin %s`, or name another "
                         "with --user",
                         s->options.user, s->options.user);
    if (pw->pw_uid == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "--user must not be root: the process that faces the network has no "
                         "privileges");
    s->uid = pw->pw_uid;
    s->gid = pw->pw_gid;
    return 0;
}

static int listen_http(struct supervisor *s, struct error *err)
{
    const char *address = s->options.listen;
    const char *colon = strrchr(address, ':');
    uint16_t port;
    if (colon == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "--listen %.60s is not HOST:PORT", address);
    if (net_listen(address, LISTEN_BACKLOG, &s->http_fd, &port, err) < 0)
        return error_prefix(err, "listening on %.60s", address);
    bool any = strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
    snprintf(s->url, sizeof(s->url), "http://%.*s:%u", any ? 9 : (int)(colon - address),
             any ? "127.0.0.1" : address, port);
    return 0;
}

static int listen_metrics(struct supervisor *s, struct error *err)
{
    const char *address = s->options.metrics_listen;
    uint16_t port;
    if (address == NULL)
        return 0;
    const char *colon = strrchr(address, ':');
    if (colon == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "--metrics-listen %.60s is not HOST:PORT",
                         address);
    if (net_listen(address, LISTEN_BACKLOG, &s->metrics_fd, &port, err) < 0)
        return error_prefix(err, "--metrics-listen %.60s", address);
    log_info("figures are at http://%.*s:%u/metrics", (int)(colon - address), address, port);
    return 0;
}

/* A socket in the data folder, for its group; the path may be longer than an address can hold. */
static int listen_unix(const struct supervisor *s, const char *name, int backlog, int *ret_fd,
                       struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", s->dir.fd, name);
    unlinkat(s->dir.fd, name, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        fchownat(s->dir.fd, name, geteuid(), s->gid, 0) < 0 ||
        fchmodat(s->dir.fd, name, 0660, 0) < 0 || listen(fd, backlog) < 0)
        return error_sys(err, "listening at %s/%s", s->dir.path, name);
    *ret_fd = steal_fd(&fd);
    return 0;
}

static int prepare_network(struct supervisor *s, struct error *err)
{
    const char *name = LAYOUT_WARDEN_EGRESS_SOCK;
    s->network = strcmp(s->options.network, "on") == 0;
    if (!s->network)
        return 0;
    egress_user(s->dir.instance, &s->egress_uid, &s->egress_gid);
    if (s->options.egress_ca != NULL) {
        s->ca_fd = open(s->options.egress_ca, O_RDONLY | O_CLOEXEC);
        if (s->ca_fd < 0)
            return error_sys(err, "--egress-ca: opening %s", s->options.egress_ca);
    }
    if (program_path("cella-egress", s->egress_path, sizeof(s->egress_path), err) < 0 ||
        egress_resolvers(s->options.resolver, s->resolvers, err) < 0 ||
        listen_unix(s, LAYOUT_EGRESS_SOCK, WARDEN_BACKLOG, &s->egress_fd, err) < 0 ||
        listen_unix(s, name, WARDEN_BACKLOG, &s->warden_egress_fd, err) < 0)
        return -1;
    if (fchownat(s->dir.fd, name, s->egress_uid, s->egress_gid, 0) < 0 ||
        fchmodat(s->dir.fd, name, 0600, 0) < 0)
        return error_sys(err, "handing out %s", name);
    return 0;
}

/* Every program's command line, so that the server does not start with one that does not fit. */
static int check_commands(const struct supervisor *s, struct error *err)
{
    struct command_line line;
    const struct command_inputs in = command_inputs(s);
    const struct egress_settings egress = egress_settings(s);
    if (warden_command(&in, &line, err) < 0 || cellad_command(&in, &line, err) < 0)
        return -1;
    return s->network ? egress_command(&egress, &line, err) : 0;
}

/* A machine, or a container, that does not let it has them run without. */
static void prepare_groups(struct supervisor *s)
{
    uint64_t bytes = s->options.server_memory_bytes;
    struct error err;
    if (bytes == 0 || test_warden() != NULL)
        return;
    if (server_group_make(&s->cellad_group, s->dir.instance, "server", bytes, &err) < 0 ||
        (s->network &&
         server_group_make(&s->egress_group, s->dir.instance, "egress", bytes, &err) < 0))
        log_warn("the server's memory has no limit (--server-memory): %s", err.message);
}

static int prepare(struct supervisor *s, struct error *err)
{
    if (geteuid() != 0 && test_warden() == NULL)
        return error_set(err, ERROR_PERMISSION_DENIED,
                         "the server makes namespaces, mounts and cgroups, so it has to be started "
                         "as root (its network-facing process then runs as \"%s\")",
                         s->options.user);
    if (test_warden() != NULL)
        snprintf(s->warden_path, sizeof(s->warden_path), "%s", test_warden());
    else if (program_path("cella-warden", s->warden_path, sizeof(s->warden_path), err) < 0)
        return -1;
    if (find_user(s, err) < 0 ||
        program_path("cella-agent", s->agent_path, sizeof(s->agent_path), err) < 0 ||
        jwt_files_open(s->options.jwt_config, &s->jwt_fd, err) < 0 ||
        datadir_open(s->options.data, s->uid, s->gid, &s->dir, err) < 0 ||
        tls_files_open(&s->dir, &s->options, &s->tls_fd, err) < 0 || listen_http(s, err) < 0 ||
        listen_metrics(s, err) < 0 ||
        listen_unix(s, LAYOUT_API_SOCK, LISTEN_BACKLOG, &s->unix_fd, err) < 0 ||
        listen_unix(s, LAYOUT_WARDEN_SOCK, WARDEN_BACKLOG, &s->warden_fd, err) < 0 ||
        prepare_network(s, err) < 0 || check_commands(s, err) < 0)
        return -1;
    prepare_groups(s);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return error_sys(err, "becoming a subreaper");

    struct sigaction hangup;
    sigaction(SIGHUP, NULL, &hangup);
    s->has_terminal = hangup.sa_handler != SIG_IGN && terminal_is_there();
    s->certificate_at_ms = now_ms() + CERTIFICATE_LOOK_MS;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SERVER_KEEP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signal_fd < 0 ? error_sys(err, "signalfd") : 0;
}

/* --- running --- */

static void announce(struct supervisor *s)
{
    char byte;
    if (read(s->ready_fd, &byte, 1) != 1)
        return;
    write_server_file(s);
    if (s->announced)
        return;
    s->announced = true;
    char program[PATH_MAX] = "cella";
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (len > 0)
        program[len] = '\0';
    const char *data = strcmp(s->dir.path, DEFAULT_DATA_DIR) == 0 ? "" : " --data ";
    const char *path = data[0] == '\0' ? "" : s->dir.path;
    printf("\n"
           "Cella is listening on %s\n"
           "The API key is in %s/%s%s\n"
           "\n"
           "Try, in another terminal:\n"
           "  %s%s%s sandbox create --name hello --wait\n"
           "  %s%s%s run hello process exec \"uname -a\"\n"
           "\n",
           s->url, s->dir.path, LAYOUT_API_KEY,
           s->options.no_auth ? " (not needed: --no-auth)" : "", program, data, path, program, data,
           path);
    fflush(stdout);
}

static void keep_sandboxes(struct supervisor *s)
{
    s->options.keep_sandboxes = true; /* of a cellad that is started later, too */
    if (s->cellad.pid > 0)
        kill(s->cellad.pid, SERVER_KEEP);
}

/* Waits for something to happen. Returns whether it was asked to end. */
static bool wait_for_events(struct supervisor *s, int timeout_ms)
{
    struct pollfd fds[] = {{.fd = s->signal_fd, .events = POLLIN},
                           {.fd = s->ready_fd, .events = POLLIN}};
    bool asked = false;
    if (poll(fds, ARRAY_LEN(fds), timeout_ms) < 0)
        return false;
    if (fds[1].revents & POLLIN)
        announce(s);
    if (fds[1].revents != 0)
        close(steal_fd(&s->ready_fd));
    struct signalfd_siginfo info;
    while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo == SERVER_KEEP)
            keep_sandboxes(s);
        else if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT ||
                 (info.ssi_signo == SIGHUP && hang_up(s)))
            asked = s->asked = true;
    reap(s);
    return asked;
}

/* Whoever asks twice for the end wants it sooner: the child is told twice, too. */
static void end_child(struct supervisor *s, struct child *child, int signal, int64_t patience_ms)
{
    int64_t deadline = now_ms() + patience_ms;
    if (child->pid > 0)
        kill(child->pid, signal);
    while (child->pid > 0 && now_ms() < deadline)
        if (wait_for_events(s, (int)(deadline - now_ms())) && child->pid > 0)
            kill(child->pid, signal);
    if (child->pid > 0) {
        log_error("%s does not end by itself: killing it", child->name);
        kill(child->pid, SIGKILL);
        waitpid(child->pid, NULL, 0);
        child->pid = 0;
    }
}

/* A server that could not start was asked for nothing: sandboxes that an earlier one has left
 * running go on. cellad, told to end, would stop those that it has found already, and it has served
 * nobody yet: so it is killed. */
static void end_children(struct supervisor *s)
{
    bool keep = s->failed || s->options.keep_sandboxes;
    log_info(keep ? "stopping: sandboxes go on"
                  : "stopping: sandboxes are stopped, their files are kept");
    end_child(s, &s->cellad, s->failed ? SIGKILL : SIGTERM,
              CELLAD_STOP_MS +
                  1000 * (int64_t)(s->options.drain_delay_s + s->options.drain_timeout_s));
    end_child(s, &s->egress, SIGTERM, EGRESS_STOP_MS);
    end_child(s, &s->warden, keep ? WARDEN_LEAVE : SIGTERM, WARDEN_STOP_MS);
}

static int supervise(struct supervisor *s, struct error *err)
{
    if (start_child(s, &s->warden, err) < 0 || start_child(s, &s->cellad, err) < 0 ||
        (s->network && start_child(s, &s->egress, err) < 0))
        return -1;
    while (!wait_for_events(s, next_wakeup_ms(s)) && !s->failed) {
        restart_due(s);
        if (now_ms() >= s->certificate_at_ms)
            renew_files(s);
    }
    end_children(s);
    server_group_remove(&s->cellad_group);
    server_group_remove(&s->egress_group);
    if (s->failed && s->made_runtime)
        runtime_unmount(s->dir.path); /* a warden that could not start does not */
    unlinkat(s->dir.fd, LAYOUT_SERVER, 0);
    unlinkat(s->dir.fd, LAYOUT_API_SOCK, 0);
    unlinkat(s->dir.fd, LAYOUT_WARDEN_SOCK, 0);
    unlinkat(s->dir.fd, LAYOUT_EGRESS_SOCK, 0);
    unlinkat(s->dir.fd, LAYOUT_WARDEN_EGRESS_SOCK, 0);
    return s->failed ? error_set(err, ERROR_INTERNAL, "the server could not start") : 0;
}

int server_main(int argc, char **argv)
{
    struct supervisor s = {
        .ready_fd = -1,
        .ca_fd = -1,
        .tls_fd = -1,
        .jwt_fd = -1,
        .metrics_fd = -1,
        .ready_write_fd = -1,
        .cellad_group = SERVER_GROUP_INIT,
        .egress_group = SERVER_GROUP_INIT,
        .warden = {.name = "warden", .exec = exec_warden},
        .cellad = {.name = "cellad", .exec = exec_cellad},
        .egress = {.name = "egress", .exec = exec_egress},
    };
    struct error err;
    if (server_options_parse(argc, argv, &s.options, &err) < 0) {
        fprintf(stderr, "cella: %s\n", err.message);
        return error_exit_status(err.code);
    }
    /* Everything that is started from here writes the same kind of lines. */
    setenv(LOG_FORMAT_ENV, s.options.log_format, 1);
    log_init("supervisor", (enum log_level)log_level_parse(s.options.log_level));
    if (prepare(&s, &err) < 0 || supervise(&s, &err) < 0) {
        fprintf(stderr, "cella: %s\n", err.message);
        return error_exit_status(err.code);
    }
    return 0;
}
