/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The fresh root of the `host` image, as tables: directories, links, files of our own, and the
 * configuration of the machine that programs in /usr cannot do without. Of that, only what
 * everybody may read on the machine is taken over, and nothing that says where things are on the
 * network (package sources, proxies, mirrors) or holds keys.
 */

#include "warden/image.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/files.h"

enum { USER_ID = 1000, COPY_DEPTH_MAX = 8, COPY_SIZE_MAX = 16 << 20 };

static const struct {
    const char *path;
    mode_t mode;
    int owner;
} skel_dirs[] = {
    {"boot", 0755, 0},
    {"dev", 0755, 0},
    {"etc", 0755, 0},
    {"etc/apt", 0755, 0},
    {"etc/apt/apt.conf.d", 0755, 0},
    {"etc/apt/preferences.d", 0755, 0},
    {"etc/apt/sources.list.d", 0755, 0},
    {"etc/apt/trusted.gpg.d", 0755, 0},
    {"etc/default", 0755, 0},
    {"home", 0755, 0},
    {"home/user", 0755, USER_ID},
    {"media", 0755, 0},
    {"mnt", 0755, 0},
    {"opt", 0755, 0},
    {"proc", 0555, 0},
    {"root", 0700, 0},
    {"run", 0755, 0},
    {"run/lock", 01777, 0},
    {"srv", 0755, 0},
    {"sys", 0555, 0},
    {"tmp", 01777, 0},
    {"usr", 0755, 0},
    {"var", 0755, 0},
    {"var/backups", 0755, 0},
    {"var/cache", 0755, 0},
    {"var/cache/apt", 0755, 0},
    {"var/cache/apt/archives", 0755, 0},
    {"var/cache/apt/archives/partial", 0700, 0},
    {"var/lib", 0755, 0},
    {"var/lib/apt", 0755, 0},
    {"var/lib/apt/lists", 0755, 0},
    {"var/lib/apt/lists/partial", 0700, 0},
    {"var/lib/dpkg", 0755, 0},
    {"var/lib/dpkg/alternatives", 0755, 0},
    {"var/lib/dpkg/info", 0755, 0},
    {"var/lib/dpkg/parts", 0755, 0},
    {"var/lib/dpkg/triggers", 0755, 0},
    {"var/lib/dpkg/updates", 0755, 0},
    {"var/local", 0755, 0},
    {"var/log", 0755, 0},
    {"var/mail", 0755, 0},
    {"var/opt", 0755, 0},
    {"var/spool", 0755, 0},
    {"var/tmp", 01777, 0},
    {"workspace", 01777, 0}, /* root's and user's alike */
};

static const struct {
    const char *path, *target;
} skel_links[] = {
    {"var/run", "/run"},
    {"var/lock", "/run/lock"},
    {"var/spool/mail", "../mail"},
    {"etc/mtab", "../proc/self/mounts"},
};

/* Links of a merged /usr; the ones that the machine has. */
static const char *const merged_links[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
                             "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
                             "bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
                             "sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
                             "sync:x:4:65534:sync:/bin:/bin/sync\n"
                             "games:x:5:60:games:/usr/games:/usr/sbin/nologin\n"
                             "man:x:6:12:man:/var/cache/man:/usr/sbin/nologin\n"
                             "lp:x:7:7:lp:/var/spool/lpd:/usr/sbin/nologin\n"
                             "mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
                             "news:x:9:9:news:/var/spool/news:/usr/sbin/nologin\n"
                             "uucp:x:10:10:uucp:/var/spool/uucp:/usr/sbin/nologin\n"
                             "proxy:x:13:13:proxy:/bin:/usr/sbin/nologin\n"
                             "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
                             "backup:x:34:34:backup:/var/backups:/usr/sbin/nologin\n"
                             "list:x:38:38:list:/var/list:/usr/sbin/nologin\n"
                             "irc:x:39:39:ircd:/run/ircd:/usr/sbin/nologin\n"
                             "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
                             "user:x:1000:1000:user:/home/user:/bin/bash\n"
                             "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";

static const char group[] =
    "root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\nadm:x:4:\ntty:x:5:\ndisk:x:6:\nlp:x:7:\n"
    "mail:x:8:\nnews:x:9:\nuucp:x:10:\nman:x:12:\nproxy:x:13:\nkmem:x:15:\ndialout:x:20:\n"
    "fax:x:21:\nvoice:x:22:\ncdrom:x:24:\nfloppy:x:25:\ntape:x:26:\nsudo:x:27:user\naudio:x:29:\n"
    "dip:x:30:\nwww-data:x:33:\nbackup:x:34:\noperator:x:37:\nlist:x:38:\nirc:x:39:\nsrc:x:40:\n"
    "shadow:x:42:\nutmp:x:43:\nvideo:x:44:\nsasl:x:45:\nplugdev:x:46:\nstaff:x:50:\ngames:x:60:\n"
    "users:x:100:\nuser:x:1000:\nnogroup:x:65534:\n";

/* No password opens either account; sudo asks for none. */
static const char shadow[] = "root:*:19700:0:99999:7:::\nuser:*:19700:0:99999:7:::\n";
static const char gshadow[] = "root:*::\nsudo:*::user\nuser:!::\n";

static const char sudoers[] = "Defaults env_reset\n"
                              "Defaults secure_path=\"/usr/local/sbin:/usr/local/bin:/usr/sbin:"
                              "/usr/bin:/sbin:/bin\"\n"
                              "root ALL=(ALL:ALL) NOPASSWD: ALL\n"
                              "user ALL=(ALL:ALL) NOPASSWD: ALL\n";

static const char nsswitch[] = "passwd: files\ngroup: files\nshadow: files\ngshadow: files\n"
                               "hosts: files dns\nnetworks: files\nprotocols: files\n"
                               "services: files\nethers: files\nrpc: files\n";

/* A sandbox is nobody's system: what keeps pip from breaking one's own is in its way here. */
static const char pip_conf[] = "[global]\nbreak-system-packages = true\n";

static const struct {
    const char *path;
    const char *text;
    mode_t mode;
} skel_files[] = {
    {"etc/passwd", passwd, 0644},          {"etc/group", group, 0644},
    {"etc/shadow", shadow, 0600},          {"etc/gshadow", gshadow, 0600},
    {"etc/sudoers", sudoers, 0440},        {"etc/nsswitch.conf", nsswitch, 0644},
    {"etc/resolv.conf", "", 0644},         {"etc/hosts", "127.0.0.1 localhost\n", 0644},
    {"etc/hostname", "localhost\n", 0644}, {"etc/fstab", "", 0644},
    {"var/lib/dpkg/available", "", 0644},  {"etc/pip.conf", pip_conf, 0644},
};

/* What is taken over from the machine's /etc. Also part of the image's stamp. */
const char *const image_skel_patterns[] = {
    "R",
    "alternatives",
    "bash.bashrc",
    "bash_completion",
    "bash_completion.d",
    "ca-certificates",
    "ca-certificates.conf",
    "debian_version",
    "fonts",
    "gai.conf",
    "host.conf",
    "inputrc",
    "issue",
    "issue.net",
    "java-*",
    "ld-musl-*",
    "ld.so.*",
    "libnl-3",
    "locale.alias",
    "locale.conf",
    "localtime",
    "login.defs",
    "lsb-release",
    "magic",
    "magic.mime",
    "matplotlibrc",
    "mime.types",
    "mke2fs.conf",
    "networks",
    "openal",
    "os-release",
    "pam.conf",
    "pam.d",
    "pki",
    "perl",
    "profile",
    "protocols",
    "python3*",
    "rpc",
    "security",
    "services",
    "sgml",
    "shells",
    "skel",
    "ssl",
    "terminfo",
    "timezone",
    "vim",
    "xattr.conf",
    "xml",
    NULL,
};

/* ---- copying ---- */

struct copy {
    int target; /* directory to copy into */
    int depth;
    int owner; /* of the copies */
    struct error *err;
};

static int copy_entry(int dirfd, const char *name, void *arg);

/* Whether the last call failed because somebody installs packages: what was listed a moment ago is
 * gone, or is something else by now. The stamp has changed with it, and so the next start looks
 * again. */
static bool went_away(void)
{
    return errno == ENOENT || errno == ELOOP || errno == EINVAL;
}

static int copy_link(const struct copy *copy, int dirfd, const char *name)
{
    char text[PATH_MAX];
    ssize_t len = readlinkat(dirfd, name, text, sizeof(text) - 1);
    if (len < 0)
        return went_away() ? 0 : error_sys(copy->err, "reading the link %s", name);
    text[len] = '\0';
    if (symlinkat(text, copy->target, name) < 0 && errno != EEXIST)
        return error_sys(copy->err, "copying the link %s", name);
    return 0;
}

static int copy_file(const struct copy *copy, int dirfd, const char *name, const struct stat *st)
{
    _cleanup_fd_ int from = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (from < 0)
        return went_away() ? 0 : error_sys(copy->err, "opening %s", name);
    _cleanup_fd_ int to =
        openat(copy->target, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st->st_mode & 0755);
    if (to < 0)
        return errno == EEXIST ? 0 : error_sys(copy->err, "copying %s", name);
    for (off_t left = st->st_size; left > 0;) {
        ssize_t n = sendfile(to, from, NULL, (size_t)left);
        if (n < 0)
            return error_sys(copy->err, "copying %s", name);
        if (n == 0)
            break;
        left -= n;
    }
    if (copy->owner != 0 && fchown(to, (uid_t)copy->owner, (gid_t)copy->owner) < 0)
        return error_sys(copy->err, "copying %s", name);
    return 0;
}

static int copy_directory(const struct copy *copy, int dirfd, const char *name)
{
    if (copy->depth >= COPY_DEPTH_MAX)
        return 0;
    _cleanup_fd_ int target = -1;
    if (dir_make_at(copy->target, name, 0755, copy->err) < 0 ||
        dir_open_at(copy->target, name, &target, copy->err) < 0)
        return -1;
    struct copy below = {
        .target = target, .depth = copy->depth + 1, .owner = copy->owner, .err = copy->err};
    return dir_each(dirfd, name, copy_entry, &below, copy->err);
}

/* What others may not read stays out, silently: that is the rule, not a failure. */
static int copy_entry(int dirfd, const char *name, void *arg)
{
    const struct copy *copy = arg;
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return went_away() ? 0 : error_sys(copy->err, "looking at %s", name);
    if (S_ISLNK(st.st_mode))
        return copy_link(copy, dirfd, name);
    if (S_ISDIR(st.st_mode) && (st.st_mode & 05) == 05)
        return copy_directory(copy, dirfd, name);
    if (S_ISREG(st.st_mode) && (st.st_mode & S_IROTH) && st.st_size <= COPY_SIZE_MAX)
        return copy_file(copy, dirfd, name, &st);
    return 0;
}

static int copy_listed(int dirfd, const char *name, void *arg)
{
    for (size_t i = 0; image_skel_patterns[i] != NULL; i++)
        if (fnmatch(image_skel_patterns[i], name, 0) == 0)
            return copy_entry(dirfd, name, arg);
    return 0;
}

/* Copies what is in the folder `from` of the machine into `to` of the image. */
static int copy_into(int root, const char *from, const char *to, dir_entry_fn fn, int owner,
                     struct error *err)
{
    _cleanup_fd_ int target = -1;
    if (dir_open_at(root, to, &target, err) < 0)
        return -1;
    struct copy copy = {.target = target, .owner = owner, .err = err};
    return dir_each(AT_FDCWD, from, fn, &copy, err);
}

/* ---- making ---- */

static int make_dirs(int root, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(skel_dirs); i++) {
        if (dir_make_at(root, skel_dirs[i].path, skel_dirs[i].mode, err) < 0)
            return -1;
        uid_t owner = (uid_t)skel_dirs[i].owner;
        if (owner != 0 && fchownat(root, skel_dirs[i].path, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
            return error_sys(err, "making %s", skel_dirs[i].path);
    }
    return 0;
}

static int make_links(int root, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(skel_links); i++)
        if (symlinkat(skel_links[i].target, root, skel_links[i].path) < 0)
            return error_sys(err, "making %s", skel_links[i].path);
    for (size_t i = 0; i < ARRAY_LEN(merged_links); i++) {
        char path[16], target[PATH_MAX];
        snprintf(path, sizeof(path), "/%s", merged_links[i]);
        ssize_t len = readlink(path, target, sizeof(target) - 1);
        if (len < 0 && errno == ENOENT)
            continue;
        if (len < 0)
            return error_set(err, ERROR_UNAVAILABLE,
                             "%s is not a link into /usr: this machine has no merged /usr", path);
        target[len] = '\0';
        if (symlinkat(target, root, merged_links[i]) < 0)
            return error_sys(err, "making %s", merged_links[i]);
    }
    return 0;
}

static int make_files(int root, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(skel_files); i++) {
        const char *path = skel_files[i].path, *text = skel_files[i].text;
        _cleanup_fd_ int fd =
            openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, skel_files[i].mode);
        if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
            return error_sys(err, "making %s", path);
    }
    return 0;
}

/* Single files from folders that hold more than a sandbox should see. Those that the machine does
 * not have (another distribution) are left out. */
static int copy_singles(int root, struct error *err)
{
    static const struct {
        const char *dir, *name;
    } singles[] = {
        {"etc/default", "useradd"},
        {"etc/default", "locale"},
        {"var/lib/dpkg", "status"},
        {"var/lib/dpkg", "alternatives"},
    };
    for (size_t i = 0; i < ARRAY_LEN(singles); i++) {
        char path[64];
        _cleanup_fd_ int from = -1, target = -1;
        snprintf(path, sizeof(path), "/%s", singles[i].dir);
        if (dir_open_at(root, singles[i].dir, &target, err) < 0)
            return -1;
        if (dir_open_at(AT_FDCWD, path, &from, err) < 0)
            continue;
        struct copy copy = {.target = target, .err = err};
        if (copy_entry(from, singles[i].name, &copy) < 0)
            return -1;
    }
    return 0;
}

int image_skel_make(int target_fd, struct error *err)
{
    if (make_dirs(target_fd, err) < 0 || make_links(target_fd, err) < 0 ||
        make_files(target_fd, err) < 0)
        return -1;
    if (copy_into(target_fd, "/etc", "etc", copy_listed, 0, err) < 0 ||
        copy_into(target_fd, "/etc/skel", "home/user", copy_entry, USER_ID, err) < 0 ||
        copy_into(target_fd, "/etc/skel", "root", copy_entry, 0, err) < 0)
        return -1;
    return copy_singles(target_fd, err);
}
