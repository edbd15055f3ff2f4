/* SPDX-License-Identifier: Apache-2.0 */

/* What is installed and set up on this machine, and what the data folder says of its server. */

#include "cli/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "base/program.h"
#include "cli/output.h"
#include "cli/settings.h"

/* How the warden shares out ids (warden/ids.h); the command line sees it from outside only. */
#define IDS_FOLDER "/run/cella/ids"
enum { IDS_SLOTS = 16384 };

enum { FREE_LEAST_MIB = 256, FREE_GOOD_MIB = 4096, FILES_PER_SANDBOX = 3, FILES_GOOD = 4096 };

static void check_root(const char *data, struct finding *f)
{
    if (geteuid() == 0) {
        finding_set(f, FINDING_OK, "yes");
        return;
    }
    finding_set(f, FINDING_WARNING, "no: the server needs root, and some checks see less");
    finding_fix(f, "sudo cella doctor");
}

static void check_user(const char *data, struct finding *f)
{
    errno = 0;
    const struct passwd *user = getpwnam(DEFAULT_USER);
    if (user != NULL) {
        finding_set(f, FINDING_OK, "uid %u", (unsigned)user->pw_uid);
        return;
    }
    finding_set(f, FINDING_MISSING, "there is no user " DEFAULT_USER);
    finding_fix(
        f,
        "useradd --system --user-group --no-create-home --shell /usr/sbin/nologin " DEFAULT_USER);
}

static void check_program(const char *name, struct finding *f)
{
    char path[SETTINGS_PATH_MAX];
    struct error why;
    if (program_path(name, path, sizeof(path), &why) == 0) {
        finding_set(f, FINDING_OK, "%s", path);
        return;
    }
    finding_set(f, FINDING_MISSING, "%s", why.message);
    finding_fix(f, "make build, or make install");
}

static void check_warden(const char *data, struct finding *f)
{
    check_program("cella-warden", f);
}

static void check_agent(const char *data, struct finding *f)
{
    check_program("cella-agent", f);
}

/* A program of the machine's. */
static bool is_installed(const char *name, struct finding *f)
{
    static const char *const folders[] = {"/usr/sbin", "/sbin", "/usr/bin", "/bin",
                                          "/usr/local/sbin"};
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        char path[64];
        snprintf(path, sizeof(path), "%s/%s", folders[i], name);
        if (access(path, X_OK) == 0) {
            finding_set(f, FINDING_OK, "%s", path);
            return true;
        }
    }
    return false;
}

static void check_mkfs(const char *data, struct finding *f)
{
    if (is_installed("mkfs.btrfs", f))
        return;
    finding_set(f, FINDING_WARNING, "not installed: no volume can be made in a file");
    finding_fix(f, "apt-get install btrfs-progs");
}

static void check_egress(const char *data, struct finding *f)
{
    check_program("cella-egress", f);
}

static void check_nft(const char *data, struct finding *f)
{
    if (is_installed("nft", f))
        return;
    finding_set(f, FINDING_WARNING, "not installed: sandboxes can have no network");
    finding_fix(f, "apt-get install nftables");
}

static void check_git(const char *data, struct finding *f)
{
    if (is_installed("git", f))
        return;
    finding_set(f, FINDING_WARNING, "not installed: no history of sandboxes' files is kept");
    finding_fix(f, "apt-get install git");
}

static void check_forwarding(const char *data, struct finding *f)
{
    if (doctor_number("/proc/sys/net/ipv4/ip_forward") == 1)
        finding_set(f, FINDING_OK, "on (net.ipv4.ip_forward)");
    else
        finding_set(f, FINDING_OK,
                    "off: a server with networks turns it on, says so in its log, and leaves it on "
                    "(net.ipv4.ip_forward)");
}

/* Whether the kernel has a way to the IPv6 Internet: a datagram socket is connected without a
 * packet. */
static bool has_ipv6_route(void)
{
    const struct sockaddr_in6 public = {
        .sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_addr = {{{0x20}}}}; /* 2000:: */
    _cleanup_fd_ int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect(fd, (const struct sockaddr *)&public, sizeof(public)) == 0;
}

/* Only those need it who ask for IPv6 (warden/net_six.c says why it is not just turned on). */
static void check_forwarding6(const char *data, struct finding *f)
{
    if (access("/proc/sys/net/ipv6", F_OK) < 0)
        finding_set(f, FINDING_OK, "this kernel has no IPv6: sandboxes have IPv4 only");
    else if (!has_ipv6_route())
        finding_set(f, FINDING_OK,
                    "this machine has no IPv6 route to the Internet: sandboxes have IPv4 only");
    else if (doctor_number("/proc/sys/net/ipv6/conf/all/forwarding") == 1)
        finding_set(f, FINDING_OK, "on");
    else
        finding_set(f, FINDING_OK,
                    "off: turned on with the first sandbox that has IPv6, unless "
                    "routes that were learned from advertisements would be lost");
}

static void check_ids(const char *data, struct finding *f)
{
    _cleanup_dir_ DIR *dir = opendir(IDS_FOLDER);
    if (dir == NULL && errno != ENOENT) {
        finding_set(f, FINDING_WARNING, "cannot look into " IDS_FOLDER);
        finding_fix(f, "sudo cella doctor");
        return;
    }
    int held = 0;
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        held += entry->d_name[0] != '.';
    finding_set(f, held < IDS_SLOTS ? FINDING_OK : FINDING_MISSING, "%d of %d ranges are held",
                held, IDS_SLOTS);
    if (held >= IDS_SLOTS)
        finding_fix(f, "stop some sandboxes, or look for leaks: cella doctor --leaks");
}

/* --- room --- */

/* The data folder, or of its parents the first one that is there. */
static void existing_part(const char *data, char *out, size_t size)
{
    snprintf(out, size, "%s", data);
    while (access(out, F_OK) < 0 && strcmp(out, "/") != 0 && strcmp(out, ".") != 0) {
        char *parent = dirname(out);
        memmove(out, parent, strlen(parent) + 1);
    }
}

static void check_space(const char *data, struct finding *f)
{
    char folder[SETTINGS_PATH_MAX], text[SIZE_TEXT_MAX];
    struct statvfs fs;
    existing_part(data, folder, sizeof(folder));
    if (statvfs(folder, &fs) < 0) {
        finding_set(f, FINDING_WARNING, "cannot look at %.100s: %s", folder, strerror(errno));
        return;
    }
    unsigned long long bytes = (unsigned long long)fs.f_bavail * fs.f_frsize;
    size_text(bytes, text);
    unsigned long long mib = bytes >> 20;
    enum finding_level level = mib < FREE_LEAST_MIB  ? FINDING_MISSING
                               : mib < FREE_GOOD_MIB ? FINDING_WARNING
                                                     : FINDING_OK;
    finding_set(f, level, "%s free for %.120s", text, data);
    if (level != FINDING_OK)
        finding_fix(f, "make room, or put the data elsewhere: cella server --data DIR");
}

static void check_files(const char *data, struct finding *f)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    unsigned long long most = limit.rlim_max;
    finding_set(f, most < FILES_GOOD ? FINDING_WARNING : FINDING_OK,
                "%llu: room for about %llu sandboxes", most, most / FILES_PER_SANDBOX);
    if (most < FILES_GOOD)
        finding_fix(f, "raise the hard limit: ulimit -Hn 65536, or LimitNOFILE= of the service");
}

static void check_inotify(const char *data, struct finding *f)
{
    long long instances = doctor_number("/proc/sys/fs/inotify/max_user_instances");
    long long watches = doctor_number("/proc/sys/fs/inotify/max_user_watches");
    bool enough = instances >= 128 && watches >= 8192;
    finding_set(f, enough ? FINDING_OK : FINDING_WARNING,
                "%lld instances and %lld watches for each sandbox", instances, watches);
    if (!enough)
        finding_fix(f, "sysctl -w fs.inotify.max_user_instances=128 "
                       "fs.inotify.max_user_watches=65536");
}

/* --- what all sandboxes share with the machine, and no limit of theirs divides --- */

enum { PIDS_GOOD = 4 << 20, PIDS_OF_A_SANDBOX = 1024, FILE_BYTES = 256 };

static void check_pids(const char *data, struct finding *f)
{
    long long most = doctor_number("/proc/sys/kernel/pid_max");
    bool enough = most >= PIDS_GOOD;
    finding_set(f, enough ? FINDING_OK : FINDING_WARNING,
                "%lld for the machine: used up by %lld sandboxes that fork until they are stopped",
                most, most / PIDS_OF_A_SANDBOX);
    if (!enough)
        finding_fix(f, "sysctl -w kernel.pid_max=%d", PIDS_GOOD);
}

/* An open file takes memory of its sandbox, at least so much: where the machine's count is higher
 * than its memory allows, memory limits are all that is needed. */
static void check_all_files(const char *data, struct finding *f)
{
    long long most = doctor_number("/proc/sys/fs/file-max");
    long long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    bool enough = most >= pages * (page / FILE_BYTES);
    finding_set(f, enough ? FINDING_OK : FINDING_WARNING, "%lld open at once on the machine%s",
                most, enough ? "" : ": a sandbox with much memory can open as many");
    if (!enough)
        finding_fix(f, "sysctl -w fs.file-max=9223372036854775807");
}

static void check_cores(const char *data, struct finding *f)
{
    char pattern[128];
    if (!doctor_read("/proc/sys/kernel/core_pattern", pattern, sizeof(pattern)))
        return;
    pattern[strcspn(pattern, " \n")] = '\0';
    if (pattern[0] != '|') {
        finding_set(f, FINDING_OK, "written to files, which sandboxes are not allowed");
        return;
    }
    finding_set(f, FINDING_WARNING, "a crash inside can start %.100s as the machine's root",
                pattern + 1);
    finding_fix(f, "sysctl -w kernel.core_pattern=core");
}

/* --- the data folder and its server --- */

enum { DISK_FREE_MIN = 64 << 20 }; /* as /ready has it */

static void check_volume(const char *data, const struct stat *image, bool mounted,
                         struct finding *f)
{
    char path[SETTINGS_PATH_MAX], size[SIZE_TEXT_MAX], taken[SIZE_TEXT_MAX], left[SIZE_TEXT_MAX];
    struct statvfs volume, disk;
    uint64_t bytes = (uint64_t)image->st_blocks * 512;
    snprintf(path, sizeof(path), "%s/" LAYOUT_VOLUME, data);
    if (statvfs(path, &volume) < 0 || statvfs(data, &disk) < 0)
        return;
    uint64_t below = (uint64_t)disk.f_bavail * disk.f_frsize;
    uint64_t inside = mounted ? (uint64_t)volume.f_bavail * volume.f_frsize : 0;
    size_text((uint64_t)image->st_size, size);
    size_text(bytes, taken);
    size_text(mounted ? inside : below, left);
    if (mounted && (volume.f_flag & ST_RDONLY)) {
        finding_set(f, FINDING_MISSING, "the btrfs volume is read-only: nothing can be written");
        finding_fix(
            f, "stop the server, run `btrfs check %s/" LAYOUT_VOLUME_IMG "`, start it again", data);
    } else if (bytes + (1 << 20) < (uint64_t)image->st_size) {
        finding_set(f, FINDING_WARNING,
                    "only %s of the %s of " LAYOUT_VOLUME_IMG
                    " are allocated: when the disk is full, sandboxes get I/O errors",
                    taken, size);
        finding_fix(f,
                    "start the server with enough free space, on a file system with fallocate()");
    } else if (below < DISK_FREE_MIN) {
        finding_set(f, FINDING_WARNING, "the disk below the data folder is full");
        finding_fix(f, "delete files, or sandboxes (`cella sandbox delete` works on a full disk)");
    } else {
        finding_set(f, FINDING_OK, "btrfs volume of %s, allocated; %s free %s", size, left,
                    mounted ? "in it now" : "on its disk; not mounted now");
    }
}

static void check_storage(const char *data, struct finding *f)
{
    char path[SETTINGS_PATH_MAX];
    struct statfs fs;
    struct stat image;
    snprintf(path, sizeof(path), "%s/" LAYOUT_VOLUME, data);
    if (statfs(path, &fs) < 0) {
        existing_part(data, path, sizeof(path));
        bool btrfs = statfs(path, &fs) == 0 && (unsigned)fs.f_type == BTRFS_SUPER_MAGIC;
        finding_set(f, FINDING_OK, "nothing there yet; to be %s",
                    btrfs ? "subvolumes of the folder's own btrfs" : "a btrfs volume in a file");
        return;
    }
    bool btrfs = (unsigned)fs.f_type == BTRFS_SUPER_MAGIC;
    snprintf(path, sizeof(path), "%s/" LAYOUT_VOLUME_IMG, data);
    if (stat(path, &image) < 0) {
        finding_set(f, btrfs ? FINDING_OK : FINDING_WARNING, "%s",
                    btrfs ? "the folder's own btrfs" : "plain folders: quotas are not enforced");
        return;
    }
    check_volume(data, &image, btrfs, f);
}

static void check_server(const char *data, struct finding *f)
{
    char text[URL_MAX + 128], *save = NULL;
    struct error why;
    if (settings_read(data, LAYOUT_SERVER, text, sizeof(text), &why) < 0) {
        bool denied = why.code == ERROR_PERMISSION_DENIED;
        finding_set(f, FINDING_WARNING, denied ? "cannot look: %s" : "none has run with %.120s",
                    denied ? why.message : data);
        finding_fix(f, denied ? "sudo cella doctor" : "cella server");
        return;
    }
    const char *lines[4] = {"", "", "", ""};
    size_t count = 0;
    for (char *line = strtok_r(text, "\n", &save); line != NULL && count < ARRAY_LEN(lines);
         line = strtok_r(NULL, "\n", &save))
        lines[count++] = line;
    pid_t pid = (pid_t)strtol(lines[0], NULL, 10);
    if (pid > 0 && (kill(pid, 0) == 0 || errno == EPERM)) {
        finding_set(f, FINDING_OK, "runs at %s (pid %d)", lines[3], (int)pid);
        return;
    }
    finding_set(f, FINDING_WARNING, "none runs with %.120s now", data);
    finding_fix(f, "cella server");
}

const struct check_row doctor_host_checks[] = {
    {"root", check_root},
    {"user " DEFAULT_USER, check_user},
    {"cella-warden", check_warden},
    {"cella-agent", check_agent},
    {"cella-egress", check_egress},
    {"mkfs.btrfs", check_mkfs},
    {"nft", check_nft},
    {"git", check_git},
    {"IPv4 forwarding", check_forwarding},
    {"IPv6 forwarding", check_forwarding6},
    {"user id ranges", check_ids},
    {"disk space", check_space},
    {"open files", check_files},
    {"inotify", check_inotify},
    {"process ids", check_pids},
    {"files of all", check_all_files},
    {"core dumps", check_cores},
    {"storage", check_storage},
    {"server", check_server},
    {NULL, NULL},
};
