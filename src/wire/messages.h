/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Every message spoken between cellad, the warden and the agents: a type, a struct, a schema.
 *
 *   cellad → warden   WARDEN_*   over DIR/run/warden.sock. Requests carry an id; the answer is the
 *                                type named below, or WIRE_ERROR, with the same id.
 *   cellad → agent    AGENT_*    over the sandbox's own socket; several requests may be under way.
 *                     FILE_*     a connection whose first frame is a FILE_* request is handed to a
 *                                file worker: one request at a time, in order, many per connection.
 *   cellad → egress   EGRESS_*   over DIR/run/egress.sock: requests are answered in order.
 *
 * To add a message: a type here, a struct, and its table in messages.c.
 */

#include <stdint.h>

#include "base/slice.h"
#include "wire/frame.h"

enum wire_type {
    WIRE_OK = 1,    /* no fields */
    WIRE_ERROR = 2, /* struct wire_error */

    WARDEN_HELLO = 16, /* struct warden_hello → WARDEN_ABOUT; the first request of a connection */
    WARDEN_ABOUT = 17,
    WARDEN_START = 18, /* struct plan → WARDEN_STARTED. One that is still being made by an earlier
                          START is waited for; ALREADY_RUNNING once it runs */
    WARDEN_STARTED = 19,
    WARDEN_STOP = 20,   /* struct warden_stop → WIRE_OK once nothing of it runs any more */
    WARDEN_REMOVE = 21, /* struct warden_ref → WIRE_OK: ended if it ran, and its files are gone */
    WARDEN_LIST = 22,   /* → WARDEN_ENTRY …, then WIRE_OK */
    WARDEN_ENTRY = 23,
    WARDEN_EXITED = 24, /* event, id 0: a sandbox's pid 1 ended by itself */
    WARDEN_CLONE = 25,  /* struct warden_clone → WIRE_OK once the copy of the files is there */
    WARDEN_UPDATE = 26, /* struct warden_update → WIRE_OK once all limits are in force */
    WARDEN_FITS = 27,   /* struct warden_fits → WIRE_OK, or RESOURCE_IN_USE */

    WARDEN_MACHINE_ASK = 28, /* → WARDEN_MACHINE */
    WARDEN_MACHINE = 29,
    WARDEN_CLAIM = 32, /* struct plan → WIRE_OK once a spare sandbox is what the plan says: its
                          name, its limits, the rules of its network, and the times of what a start
                          would have made just now. Once. NOT_RUNNING when it does not run, or is no
                          spare one; one that has the name already is left alone, and that is OK */

    WARDEN_STATS = 40, /* struct warden_stats → WARDEN_SAMPLE of those that run …, then WIRE_OK */
    WARDEN_SAMPLE = 41,

    WARDEN_NET_SET =
        46, /* struct warden_net_set → WIRE_OK: these rules hold from now on, for what
               is open too. NOT_RUNNING; CONFLICT when it was started without network */
    /* Over DIR/run/warden-egress.sock only, where nothing else is taken: */
    WARDEN_NET_ADMIT = 47,  /* struct warden_net_admit → WIRE_OK */
    WARDEN_NET_LISTEN = 48, /* struct warden_net_listen → WIRE_OK, and a descriptor with its first
                               byte. UNAVAILABLE while an earlier egress has it still */
    WARDEN_NET_COUNT = 54,  /* struct warden_net_count → WARDEN_NET_COUNTED */
    WARDEN_NET_COUNTED = 55,

    AGENT_HELLO = 64, /* → AGENT_ABOUT */
    AGENT_ABOUT = 65,
    AGENT_EXEC = 66, /* struct agent_exec → AGENT_PROCESS at the start, or (EXEC_WAIT) at the end */
    AGENT_WAIT = 67, /* struct agent_ref → AGENT_PROCESS, without output, when it has ended */
    AGENT_GET = 68,  /* struct agent_ref → AGENT_PROCESS */
    AGENT_LIST = 69, /* → AGENT_PROCESS …, then WIRE_OK */
    AGENT_PROCESS = 70,
    AGENT_STOP = 71,     /* struct agent_stop → AGENT_PROCESS once its whole tree is gone */
    AGENT_LOG_READ = 72, /* struct agent_log_read → AGENT_LOG */
    AGENT_LOG = 73,
    AGENT_CANCEL = 74, /* no fields, no answer: nobody waits any more for the request of this id */
    AGENT_FOLLOW = 75, /* struct agent_follow → AGENT_PROCESS, AGENT_STDOUT, AGENT_STDERR and
                          AGENT_GAP … as output comes, AGENT_PROCESS once it has ended. One at a
                          time on a connection. An AGENT_EXEC with EXEC_FOLLOW goes on so, too */
    AGENT_STDOUT = 76, /* raw bytes, at most WIRE_DATA_CHUNK */
    AGENT_STDERR = 77,
    AGENT_GAP = 78,       /* struct agent_gap: these bytes were dropped before they were read */
    AGENT_STDIN = 79,     /* struct agent_stdin → WIRE_OK once the process's pipe has taken it */
    AGENT_STDIN_END = 80, /* struct agent_ref → WIRE_OK: the end of its input */
    AGENT_PORTS = 81,     /* struct agent_ref → AGENT_PORT …, then WIRE_OK */
    AGENT_PORT = 82,
    AGENT_LIMITS = 83, /* no fields → WIRE_OK; then one byte with descriptors → WIRE_OK: groups of
                          the memory and the pids controller, in this order, below which the
                          agent limits single commands. Only where controllers are cgroup v1's */
    AGENT_SIGNAL = 84, /* struct agent_signal → WIRE_OK. NOT_RUNNING when its leader has ended */
    AGENT_CLEAN_ASK = 85, /* no fields → AGENT_CLEAN: what AGENT_PROCESS says at an end, for what is
                             no process of its own (a run in an interpreter that stays) */
    AGENT_CLEAN = 86,     /* struct agent_clean */

    WARDEN_PAUSE = 93,  /* struct warden_ref → WIRE_OK once all of it stands still: it is frozen,
                           with  its memory, until WARDEN_RESUME, whoever is killed meanwhile. Fine
                           when it  is. NOT_RUNNING; TIMEOUT, and it goes on, when something does not
                           stop;  CONFLICT while its files are being copied */
    WARDEN_RESUME = 94, /* struct warden_ref → WIRE_OK: it goes on. Fine when it does. NOT_RUNNING,
                           CONFLICT */

    AGENT_TERMINAL_OPEN = 96, /* struct agent_terminal_open → AGENT_TERMINAL once its shell runs */
    AGENT_TERMINAL = 97,
    AGENT_TERMINAL_LIST = 98, /* → AGENT_TERMINAL …, then WIRE_OK */
    AGENT_TERMINAL_ATTACH =
        99, /* struct agent_terminal_attach → AGENT_TERMINAL, then AGENT_TERMINAL_OUTPUT …, and
             * AGENT_TERMINAL_EXIT at the end. Once per connection, which is its own best */
    AGENT_TERMINAL_OUTPUT = 100,
    AGENT_TERMINAL_EXIT = 101,
    AGENT_TERMINAL_INPUT = 102, /* struct agent_terminal_input → WIRE_OK; or, without a session, to
                                 * the attached one → AGENT_TERMINAL_TAKEN */
    AGENT_TERMINAL_TAKEN = 103,  /* struct agent_terminal_taken */
    AGENT_TERMINAL_RESIZE = 104, /* struct agent_terminal_resize → WIRE_OK */
    AGENT_TERMINAL_CLOSE = 105,  /* struct agent_terminal_ref → WIRE_OK once nothing runs in it */
    AGENT_TERMINAL_HANG_UP = 106, /* → WIRE_OK at once: all sessions are being closed */
    WARDEN_SOCKET = 112, /* struct warden_socket → WIRE_OK, and a descriptor with its first byte */
    WARDEN_HELPER = 114, /* struct warden_helper → WIRE_OK, and a descriptor with its first byte */
    WARDEN_DELEGATE = 113, /* struct warden_delegate → WIRE_OK, with or without a descriptor */

    AGENT_CHANGES = 120, /* struct agent_changes → AGENT_CHANGE …, then WIRE_OK */
    AGENT_CHANGE = 121,
    AGENT_TIMED_READ = 122, /* struct agent_timed_read → AGENT_TIMED */
    AGENT_TIMED = 123,

    FILE_STAT = 128, /* struct file_ref → FILE_ENTRY */
    FILE_LIST = 129, /* struct file_ref → FILE_ENTRY of the directory, FILE_ENTRY …, then WIRE_OK */
    FILE_READ = 130, /* struct file_read → FILE_ENTRY, FILE_DATA …, FILE_END */
    FILE_WRITE = 131, /* struct file_write, then FILE_DATA …, FILE_END from cellad → FILE_ENTRY */
    FILE_MKDIR = 132,  /* struct file_mkdir → FILE_ENTRY */
    FILE_REMOVE = 133, /* struct file_remove → FILE_ENTRY of what it was (a link itself) */
    FILE_ENTRY = 134,
    FILE_DATA = 135, /* raw bytes, at most WIRE_DATA_CHUNK */
    FILE_END = 136,  /* no fields */

    FILE_TREE =
        137, /* struct file_tree_get → FILE_ENTRY of the root, FILE_ENTRY …, FILE_TREE_END */
    FILE_TREE_END = 138,  /* struct file_tree_end */
    FILE_TREE_PUT = 139,  /* struct file_tree_begin, then FILE_TREE_ITEM, FILE_DATA …, …
                           * and FILE_END from cellad → FILE_ENTRY of the root */
    FILE_TREE_ITEM = 140, /* struct file_tree_item */
    FILE_WATCH = 141, /* struct file_watch → WIRE_OK, then FILE_EVENT … until somebody hangs up */
    FILE_EVENT = 142, /* struct file_event */
    FILE_FIND = 143,  /* struct file_find → FILE_MATCH …, FILE_FOUND */
    FILE_MATCH = 144, /* struct file_match */
    FILE_FOUND = 145, /* struct file_found */
    FILE_MOVE = 146,  /* struct file_move → FILE_ENTRY of what it is now */

    UPLOAD_START = 150, /* struct file_write → UPLOAD_ABOUT */
    UPLOAD_PART = 151,  /* struct upload_part, then FILE_DATA …, FILE_END → UPLOAD_PART_ABOUT */
    UPLOAD_COMPLETE = 152, /* struct upload_complete → FILE_ENTRY */
    UPLOAD_ABORT = 153,    /* struct upload_ref → WIRE_OK */
    UPLOAD_PARTS = 154,    /* struct upload_ref → UPLOAD_ABOUT, UPLOAD_PART_ABOUT …, WIRE_OK */
    UPLOAD_LIST = 155,     /* → UPLOAD_ABOUT …, WIRE_OK */
    UPLOAD_ABOUT = 156,
    UPLOAD_PART_ABOUT = 157,

    HISTORY_LIST = 160, /* struct history_list → HISTORY_ENTRY …, HISTORY_LISTED */
    HISTORY_ENTRY = 161,
    HISTORY_LISTED = 162,
    HISTORY_READ = 163, /* struct history_read → for each path, in order, HISTORY_ENTRY and, unless
                         * that says HISTORY_NO_CONTENT, FILE_DATA … and HISTORY_READ_END; WIRE_OK
                         * after the last one */
    HISTORY_READ_END = 164,
    HISTORY_APPLY = 165, /* struct history_apply, then HISTORY_ITEM, FILE_DATA …, … and FILE_END
                          * from cellad → HISTORY_APPLIED */
    HISTORY_ITEM = 166,
    HISTORY_APPLIED = 167,
    HISTORY_WATCH = 168, /* no fields → WIRE_OK, and with it a descriptor of the inotify instance
                          * that AGENT_CLEAN goes by; UNAVAILABLE where there is none */
    FILE_TYPES_LAST = 175, /* all from FILE_STAT to here go to file workers */

    EGRESS_HELLO = 176, /* struct egress_hello → EGRESS_ABOUT; the first request of a connection */
    EGRESS_ABOUT = 177,
    EGRESS_SET = 178,  /* struct egress_set → WIRE_OK: the policy holds, for what is open too */
    EGRESS_DROP = 179, /* struct egress_ref → WIRE_OK: its connections are closed, its log is gone.
                          Fine for one that is not known */
    EGRESS_KEEP = 180,     /* struct egress_keep → WIRE_OK: all but these are dropped */
    EGRESS_LOG_READ = 181, /* struct egress_log_read → EGRESS_LOG_ENTRY …, the oldest first, then
                              WIRE_OK. SANDBOX_NOT_FOUND */
    EGRESS_LOG_ENTRY = 182,
    EGRESS_LOG_PULL = 183, /* struct egress_log_pull → EGRESS_LOG_ENTRY …, then WIRE_OK */
    EGRESS_SECRETS = 190, /* struct egress_secrets → WIRE_OK: instead of those before. Follows the
                             EGRESS_SET of its sandbox, and every change of what it holds.
                             SANDBOX_NOT_FOUND */
    EGRESS_TYPES_LAST = 199,
};

/*
 * Versions of the three protocols. cellad, the warden and the egress process are started together,
 * so theirs have to be equal. An agent is as old as its sandbox, and outlives an upgrade of the
 * server: cellad talks to agents from AGENT_VERSION_OLDEST to AGENT_VERSION. Raise AGENT_VERSION
 * with every change of an AGENT_*, FILE_*, UPLOAD_* or HISTORY_* message, and AGENT_VERSION_OLDEST
 * when older agents can no longer be served.
 */
enum {
    WARDEN_VERSION = 2,
    EGRESS_VERSION = 2,
    AGENT_VERSION = 1,
    AGENT_VERSION_OLDEST = 1,
};

struct wire_error {
    uint64_t code; /* enum error_code */
    uint64_t sys;
    const char *message;
};

/* --- warden --- */

/*
 * Fencing. A cellad that is killed leaves requests behind in its connection that the warden has not
 * read yet. They must not be carried out after the next cellad has asked what runs. So every
 * control connection names an epoch, a number that only goes up. A higher epoch than any before
 * takes over: the warden closes the connections of earlier epochs, with what is unread in them,
 * before it answers. Requests of an earlier epoch are refused with UNAVAILABLE. Connections of the
 * same epoch serve the same cellad side by side.
 */
struct warden_hello {
    uint64_t epoch;
};

struct warden_about {
    uint64_t version;
    const char *instance; /* id of the data folder */
    const char *storage;  /* what is in force, for people: "btrfs loop volume, simple quota" */
    const char *cgroups;  /* "v1", "v2" */
    const char *network;  /* why sandboxes have no network here, for people; NULL: they have */
    const char *gateway; /* their resolver's and proxies' address: "10.201.0.1"; NULL: no network */
    uint64_t agent_version; /* AGENT_VERSION of the agents that it starts */
};

enum plan_flags {
    PLAN_NO_NEW_PRIVS = 1 << 0,
    PLAN_READ_ONLY_ROOT = 1 << 1,  /* /tmp and /workspace are memory, of scratch_bytes each */
    PLAN_NO_SUBPROCESS = 1 << 2,   /* commands have threads only; needs PLAN_NO_NEW_PRIVS */
    PLAN_NO_CAPABILITIES = 1 << 3, /* an empty bounding set; commands have none at all */
    PLAN_STRICT_CALLS = 1 << 4,    /* the stricter system call filter: no ptrace and its like */
};

/* As the kernel knows them; what a name means is the egress process's business. */
enum plan_network {
    PLAN_NETWORK_NONE = 0,      /* a namespace with lo in it, and nothing else */
    PLAN_NETWORK_ISOLATED = 1,  /* everything but what is always cut off */
    PLAN_NETWORK_ALLOWLIST = 2, /* the resolver, the proxies, and what rules and admissions say */
    PLAN_NETWORK_FULL = 3,      /* as isolated, and private ranges that the operator has opened */
};

enum plan_network_flags {
    PLAN_NETWORK_PROXIED = 1 << 0, /* ports 80 and 443 go to the proxies (allow-list: always) */
    PLAN_NETWORK_IPV6 = 1 << 1,    /* it has an IPv6 address, too */
};

enum { PLAN_RULE_DENY = 0, PLAN_RULE_ALLOW = 1 };

/* A rule on addresses. Of a list the first that fits decides; what it allows is not proxied.
 * Packed, since lists of them are bytes in a message. */
struct plan_net_rule {
    uint8_t family; /* 4; 6: of no effect without PLAN_NETWORK_IPV6 */
    uint8_t bits;   /* of the prefix */
    uint8_t verdict;
    uint8_t protocol;               /* of IP: 6 tcp, 17 udp; 0: both */
    uint16_t first_port, last_port; /* host order; 0 and 65535: all */
    uint8_t address[16];            /* network order; nothing is set behind the prefix */
};
_Static_assert(sizeof(struct plan_net_rule) == 24, "a message's bytes");

/* What to make. Everything the warden needs, and nothing that it would have to interpret: it
 * knows images by their id in its own store, never by a path from outside. */
struct plan {
    const char *id;       /* immutable id of the sandbox: [a-z0-9]{1,32} */
    const char *hostname; /* a DNS label */
    const char *image;    /* "host" */
    uint64_t memory_bytes;
    uint64_t cpu_millis; /* thousandths of a core */
    uint64_t pids_max;
    uint64_t disk_bytes;                        /* quota of the writable layer */
    uint64_t shm_bytes;                         /* size of /dev/shm */
    uint64_t flags;                             /* enum plan_flags */
    uint64_t scratch_bytes;                     /* with PLAN_READ_ONLY_ROOT */
    uint64_t disk_read_bytes, disk_write_bytes; /* per second; 0: no limit, as in the next ones */
    uint64_t disk_read_ops, disk_write_ops;
    uint64_t memory_bandwidth;                    /* per cent of the machine's */
    uint64_t network;                             /* enum plan_network */
    uint64_t network_flags;                       /* enum plan_network_flags */
    uint64_t network_in_bytes, network_out_bytes; /* per second; 0: no limit */
    struct slice network_rules;                   /* struct plan_net_rule … */
    uint64_t spare; /* 1: START makes it ahead of time, for a CLAIM; CLAIM: its limits stay */
};

enum machine_flags {
    MACHINE_OWN_VOLUME = 1 << 0, /* disk_used counts layers, and nothing else */
    MACHINE_LIMITS_READS = 1 << 1,
    MACHINE_LIMITS_WRITES = 1 << 2, /* all of them; else direct ones at most */
    MACHINE_LIMITS_MEMORY_BANDWIDTH = 1 << 3,
    MACHINE_DISK_READ_ONLY = 1 << 4, /* layers cannot be written to */
    MACHINE_SPARSE_VOLUME = 1 << 5,  /* the volume's file is not allocated in full */
};

/* What there is to give, and which of the limits in a plan are more than words here. */
struct warden_machine {
    uint64_t flags;      /* enum machine_flags */
    uint64_t disk_total; /* bytes that layers could take in all, those they take included */
    uint64_t disk_used;
    uint64_t disk_free;           /* for layers: in the volume, and what it may still grow by */
    uint64_t disk_below;          /* free on the disk that the data folder is on */
    uint64_t disk_reserve;        /* of that disk, which the volume leaves free */
    uint64_t volume_size;         /* now; 0: no volume of ours */
    const char *disk_io;          /* for people: how rates are limited, or why not */
    const char *memory_bandwidth; /* the same */
    const char *ipv6;             /* why sandboxes cannot have it right now; NULL: they can */
};

struct warden_started {
    uint64_t pid;         /* of the sandbox's pid 1, outside */
    uint64_t start_time;  /* field 22 of /proc/PID/stat: pid and start time name it for ever */
    uint64_t fresh;       /* 1: its writable layer was made by this start */
    const char *address;  /* in its network: "10.201.0.7"; NULL: it has none */
    const char *address6; /* the one that it has, or would have, with PLAN_NETWORK_IPV6 */
    uint64_t joined;      /* 1: an earlier START was making it, and that one's plan counts */
};

struct warden_ref {
    const char *id;
};

struct warden_stop {
    const char *id;
    uint64_t grace_ms; /* SIGTERM to the processes first; 0: at once */
};

struct warden_entry {
    const char *id;
    uint64_t running; /* 0: only its files are there, or are being copied */
    uint64_t pid;
    uint64_t start_time;
    const char *address; /* as warden_started's, both */
    const char *address6;
    uint64_t paused; /* 1: it runs, and is to stand still */
};

struct warden_exited {
    const char *id;
    uint64_t oom; /* 1: the memory limit ended it */
};

struct warden_stats {
    struct slice ids; /* of at most STATS_IDS_MAX sandboxes: the warden reads them in one go */
};

enum sample_known {
    SAMPLE_CPU = 1 << 0,
    SAMPLE_MEMORY = 1 << 1,
    SAMPLE_DISK = 1 << 2,
    SAMPLE_NETWORK = 1 << 3,
};

/* What a running sandbox has used and uses, agent included. */
struct warden_sample {
    const char *id;
    uint64_t known;        /* enum sample_known: which of the numbers are there */
    uint64_t time_usec;    /* when cpu time was read, by the machine's monotonic clock */
    uint64_t cpu_usec;     /* since its start */
    uint64_t memory_bytes; /* the working set: without file pages that nobody used lately */
    uint64_t disk_bytes;   /* of its writable layer */
    uint64_t tasks;        /* processes and threads, the agent aside */
    uint64_t oom_kills;    /* processes ended by the memory limit since its start */
    uint64_t network_in_bytes, network_out_bytes; /* since its start, what was refused included */
    uint64_t network_in_packets, network_out_packets;
};

/*
 * A new sandbox's writable layer, as the source's is at one moment: what runs in the source stands
 * still meanwhile. It can be asked again: a layer that is there already is fine. FILE_NOT_FOUND
 * when the source has none yet, RESOURCE_IN_USE when it holds more than disk_bytes, CONFLICT while
 * one of the two is being started or ended.
 */
struct warden_clone {
    const char *id;
    const char *source;
    const char *hostname; /* for /etc/hostname and /etc/hosts of the copy */
    uint64_t disk_bytes;
};

/* New limits for a sandbox, running or not: all of them, or (with an error) none.
 * RESOURCE_IN_USE when it uses more than it would have. */
struct warden_update {
    const char *id;
    uint64_t memory_bytes;
    uint64_t cpu_millis;
    uint64_t pids_max;
    uint64_t disk_bytes;
    uint64_t disk_read_bytes, disk_write_bytes; /* as a plan's */
    uint64_t disk_read_ops, disk_write_ops;
    uint64_t memory_bandwidth;
};

/* Whether the files of a sandbox would fit. */
struct warden_fits {
    const char *id;
    uint64_t disk_bytes;
};

enum { SOCKET_UNIX = 1, SOCKET_IPV4 = 4, SOCKET_IPV6 = 6 };

/* A socket that lives in the sandbox's network, not connected yet: TCP, or a unix one, which finds
 * the sandbox's abstract names and (its folders being those of whoever connects) nothing else of
 * the sandbox's. */
struct warden_socket {
    const char *id;
    uint64_t family;
};

/*
 * A control group for the programs that cellad runs on behalf of a workspace (git), with limits of
 * its own. The descriptor is a file that takes the pid of a process that is to be in it; there is
 * one for each of the machine's hierarchies that limit it (`part` 0, 1 …; past them NOT_FOUND).
 */
enum { HELPER_GROUPS = 64, HELPER_PARTS_MAX = 2 };

struct warden_helper {
    uint64_t group; /* less than HELPER_GROUPS */
    uint64_t part;
};

/* Another policy for a sandbox that runs: all of it, in one step. */
struct warden_net_set {
    const char *id;
    uint64_t network; /* as a plan's, these four; NONE cuts it off */
    uint64_t network_flags;
    uint64_t network_in_bytes, network_out_bytes;
    struct slice network_rules;
};

/* The sandbox at this address may connect there, on ports that are not proxied, for ttl_s seconds:
 * it has been told the address by the resolver. The same again makes it longer. */
struct warden_net_admit {
    const char *id;       /* whose address it has to be: the next sandbox may have it by now */
    struct slice sandbox; /* 4 or 16 bytes, network order, and as many in the next */
    struct slice address;
    uint64_t protocol; /* of IP: 6, 17 */
    uint64_t port;
    uint64_t last_port; /* of a range; 0: the one port */
    uint64_t ttl_s;
};

enum net_listener {
    NET_LISTEN_DNS_UDP = 1, /* bound */
    NET_LISTEN_DNS_TCP = 2, /* this one and the next: listening */
    NET_LISTEN_HTTP = 3,
    NET_LISTEN_TLS = 4,
    NET_LISTEN_SIX = 4, /* added to each of these: the same for IPv6. NETWORK_UNAVAILABLE */
    NET_LISTEN_CONNECTIONS = 16, /* netlink: conntrack tells of those that are not proxied */
    NET_LISTEN_REFUSALS = 17,    /* netlink: what rules refuse, by nflog */
};

/* How much a connection was that is not proxied. An error once the kernel has forgotten it. */
struct warden_net_count {
    struct slice sandbox; /* 4 or 16 bytes, network order, as the next */
    struct slice address;
    uint64_t protocol; /* of IP */
    uint64_t sandbox_port, port;
};

struct warden_net_counted {
    uint64_t in_bytes, out_bytes; /* into the sandbox, out of it; with the headers of IP */
};

/* A socket that lives where sandboxes' connections end up: SO_ORIGINAL_DST says where they were
 * going, and their source address is the sandbox's. */
struct warden_net_listen {
    uint64_t which; /* enum net_listener */
};

enum delegate_controller { DELEGATE_MEMORY = 1, DELEGATE_PIDS = 2 };
enum { LIMIT_FDS = 2 }; /* that come with AGENT_LIMITS */

/*
 * Has the sandbox's agent be able to set limits on single commands. With cgroup v1 the answer
 * brings the folder of that controller which the sandbox's root may make groups in, for the agent;
 * with v2 it brings nothing, since the agent has its folder already, and controller does not
 * matter. It can be asked again.
 */
struct warden_delegate {
    const char *id;
    uint64_t controller; /* enum delegate_controller */
};

/* --- agent: processes --- */

struct agent_about {
    uint64_t version;
    uint64_t started_ms; /* Unix time in ms */
};

enum exec_flags {
    EXEC_WAIT = 1 << 0,   /* answer when it has ended, with its output (PROCESS_INLINE_MAX each) */
    EXEC_FOLLOW = 1 << 1, /* answer at the start, then as AGENT_FOLLOW with FOLLOW_HOLD */
    EXEC_STDIN = 1 << 2,  /* its stdin is a pipe for AGENT_STDIN; else /dev/null */
    EXEC_STDIN_ONCE = 1 << 3, /* … which ends after stdin_data */
    EXEC_RESTART = 1 << 4,    /* start it again when it fails, max_restarts times at most */
    EXEC_KEEP_ALIVE = 1 << 5, /* only kept and shown */
};

enum { RESTARTS_UNLIMITED = 0xffffffff };

/*
 * Limits of one command: of its whole tree, in a group of its own, besides the sandbox's. 0: none.
 * Hitting one kills the tree, and is what its end is called (enum process_state); open_files is
 * merely what it may have open (RLIMIT_NOFILE).
 */
struct command_limits {
    uint64_t memory_bytes;
    uint64_t time_ms;      /* of whatever is left of the tree too, when its leader has ended */
    uint64_t processes;    /* and threads */
    uint64_t output_bytes; /* stdout and stderr together */
    uint64_t open_files;
};

struct agent_exec {
    const char *command; /* a shell command line; or … */
    struct slice argv;   /* … a program and its arguments. Exactly one of the two */
    const char *cwd;     /* absolute; FILE_NOT_FOUND when it is not there */
    struct slice env;    /* "NAME=value" …: over the agent's defaults (PATH, HOME, USER, …) */
    const char *user;    /* a name in the sandbox's /etc/passwd, or a number */
    uint64_t timeout_ms; /* 0: none. Then the whole tree is killed */
    uint64_t log_max;    /* bytes kept per stream; 0: PROCESS_LOG_MAX */
    uint64_t flags;      /* enum exec_flags */
    const char *name;    /* ALREADY_EXISTS while another one of that name runs; NULL: made up */
    struct slice stdin_data; /* with EXEC_STDIN: what it reads first; at most PROCESS_INPUT_CHUNK */
    uint64_t max_restarts;   /* with EXEC_RESTART; RESTARTS_UNLIMITED: no limit */
    struct command_limits limits; /* UNAVAILABLE when they need groups that nobody handed over */
    const char *execution; /* what cellad calls it; told back in AGENT_PROCESS. NULL: nothing */
};

enum process_state {
    PROCESS_RUNNING = 0,
    PROCESS_EXITED = 1,
    PROCESS_STOPPED = 2, /* AGENT_STOP with a grace */
    PROCESS_KILLED = 3,  /* AGENT_STOP without */
    PROCESS_TIMED_OUT = 4,
    PROCESS_OUT_OF_MEMORY = 5, /* of the sandbox */
    PROCESS_MEMORY_LIMIT = 6,  /* the command's own: struct command_limits */
    PROCESS_PROCESS_LIMIT = 7,
    PROCESS_OUTPUT_LIMIT = 8,
};

/* A process is found by its pid, or (0) by its name: the one that runs, or the newest. AGENT_WAIT
 * also finds it by what cellad calls its execution, for who has not been told a pid. */
struct agent_ref {
    uint64_t pid;
    const char *name;
    const char *execution;
};

struct agent_process {
    uint64_t pid; /* inside the sandbox; of its first start, when it was started again */
    uint64_t state;
    uint64_t exit_code; /* as a shell says it: 128 + signal when a signal ended it */
    uint64_t signal;
    uint64_t started_ms; /* Unix time */
    uint64_t ended_ms;   /* 0 while it runs */
    const char *command; /* argv joined by spaces when it was given so */
    const char *cwd;
    const char *user;
    uint64_t stdout_total; /* bytes written so far, kept or not */
    uint64_t stderr_total;
    struct slice stdout_data; /* only when its end was waited for: the newest bytes */
    struct slice stderr_data;
    const char *name; /* NULL: of an agent that is too old to know */
    uint64_t flags;   /* as it was started; EXEC_STDIN only while its stdin is open */
    uint64_t restarts;
    uint64_t max_restarts;
    uint64_t clean;        /* of one that has ended, as struct agent_clean's */
    const char *execution; /* as it was started with; NULL: without */
};

/*
 * 1: nothing below the roots of the last HISTORY_LIST has changed since it was asked for, as far as
 * inotify can tell: what is written through a mapping is noticed when the file is let go, and a
 * name outside of the roots that a file in them got since (a hard link) is not watched.
 * 0, or absent: something has, or may have.
 */
struct agent_clean {
    uint64_t clean;
};

struct agent_stop {
    uint64_t pid;
    uint64_t grace_ms; /* SIGTERM, then SIGKILL to the whole tree after this; 0: SIGKILL at once */
    const char *name;
};

/* To the leader's process group, as a key of a terminal would: what it waits for is told too, what
 * it has put into the background is not. */
struct agent_signal {
    uint64_t pid;
    const char *name;
    uint64_t signal; /* SIGINT, SIGTERM, …; not those that a process can do nothing about */
};

/* LOG_BOTH: both streams in the order in which their bytes came, with offsets of its own. */
enum { LOG_STDOUT = 1, LOG_STDERR = 2, LOG_BOTH = 3 };

struct agent_log_read {
    uint64_t pid;
    uint64_t stream;
    uint64_t offset; /* in the whole output; earlier than what is kept: starts at what is kept */
    uint64_t max;    /* at most WIRE_DATA_CHUNK are sent */
    const char *name;
};

struct agent_log {
    uint64_t offset; /* of the first byte in data: bytes before it were dropped or not asked for */
    uint64_t total;  /* of the stream so far */
    uint64_t open;   /* 1: more may come */
    struct slice data;
};

enum follow_flags {
    FOLLOW_HOLD = 1 << 0, /* the process waits for this reader as for the reader of a pipe */
    FOLLOW_ONCE = 1 << 1, /* what is there now, and no more */
};

struct agent_follow {
    uint64_t pid;
    const char *name;
    uint64_t offset; /* in both streams together, as of LOG_BOTH */
    uint64_t flags;  /* enum follow_flags */
};

struct agent_gap {
    uint64_t bytes;
};

struct agent_stdin {
    uint64_t pid;
    const char *name;
    struct slice data; /* at most PROCESS_INPUT_CHUNK */
};

enum port_protocol { PORT_TCP = 1, PORT_UDP = 2 };

/* A TCP socket that listens or a UDP one that is bound, of a process or its children. */
struct agent_port {
    uint64_t port;
    uint64_t protocol;    /* enum port_protocol */
    struct slice address; /* 4 or 16 bytes */
};

/* --- agent: terminals --- */

enum terminal_flags {
    TERMINAL_OR_EXISTING = 1 << 0, /* a session of that name is answered with, not refused */
};

struct agent_terminal_open {
    const char *session; /* [A-Za-z0-9._-]{1,TERMINAL_SESSION_MAX} */
    const char *command; /* a command line; NULL: a shell */
    const char *shell;   /* a program; NULL: the user's own, or bash, or sh */
    const char *cwd;     /* as in agent_exec, like env and user */
    struct slice env;
    const char *user;
    uint64_t cols; /* 0: 80 and 24 */
    uint64_t rows;
    uint64_t idle_ms;    /* how long it stays with nobody attached; 0: TERMINAL_IDLE_MS */
    uint64_t flags;      /* enum terminal_flags */
    uint64_t timeout_ms; /* of its life; 0: none */
};

struct agent_terminal {
    const char *session;
    uint64_t pid;        /* of the shell, inside the sandbox */
    const char *command; /* the shell's path, or the command line */
    const char *cwd;
    const char *user;
    uint64_t cols;
    uint64_t rows;
    uint64_t started_ms; /* Unix time */
    uint64_t attached;   /* how many are */
    uint64_t ended;      /* 1: only its last output is left */
    uint64_t created;    /* 1: by this request */
    uint64_t start;      /* offset of the oldest byte of output that is kept */
    uint64_t total;      /* bytes of output so far */
    uint64_t taken;      /* bytes of input so far of the client that attaches */
};

struct agent_terminal_ref {
    const char *session;
};

#define TERMINAL_FROM_NOW UINT64_MAX

struct agent_terminal_attach {
    const char *session;
    uint64_t offset; /* of the first byte of output to be sent, or of what is kept after it */
    uint64_t cols;   /* 0: as it is */
    uint64_t rows;
    const char *client; /* who it is, for somebody who may have to come back: see `taken` */
};

struct agent_terminal_output {
    uint64_t offset; /* of the first byte: where it is not where the last one ended, bytes in
                      * between were dropped */
    struct slice data;
};

enum terminal_end {
    TERMINAL_EXITED = 0, /* by itself */
    TERMINAL_CLOSED = 1,
    TERMINAL_IDLE = 2, /* nobody was attached for too long */
    TERMINAL_TIMED_OUT = 3,
};

struct agent_terminal_exit {
    uint64_t exit_code; /* of the shell, as in agent_process */
    uint64_t signal;
    uint64_t reason; /* enum terminal_end */
    uint64_t total;  /* bytes of output in all */
};

struct agent_terminal_input {
    const char *session; /* NULL: the one that this connection is attached to */
    struct slice data;
};

struct agent_terminal_taken {
    uint64_t taken; /* bytes of this client's input in all: the session has them for good */
};

struct agent_terminal_resize {
    const char *session; /* NULL: the attached one */
    uint64_t cols;
    uint64_t rows;
};

/* Which processes have written something since: their output together is the sandbox's log. */
struct agent_changes {
    uint64_t after; /* the largest `change` of the last answer; 0: all that have ever written */
};

struct agent_change {
    uint64_t change;   /* counts up with everything that any process writes */
    uint64_t sequence; /* names the process for ever, when its pid is used again too */
    uint64_t pid;
    const char *name;
    uint64_t stdout_total;
    uint64_t stderr_total;
};

struct agent_timed_read {
    uint64_t sequence;
    uint64_t stream; /* LOG_STDOUT or LOG_STDERR */
    uint64_t offset;
    uint64_t max;
};

/* As struct agent_log, and when the bytes came. */
struct agent_timed {
    uint64_t offset;
    uint64_t total;
    uint64_t open;
    struct slice data;
    struct slice times; /* pairs of offset and Unix time in ms, 64 bits each */
};

/* --- agent: files. All paths are absolute inside the sandbox --- */

enum file_ref_flags {
    FILE_NO_FOLLOW = 1 << 0, /* a link at the end is what is looked at, not where it leads */
    FILE_SORTED = 1 << 1,    /* FILE_LIST: what is no directory first, each kind by name */
};

struct file_ref {
    const char *path;
    uint64_t flags;         /* enum file_ref_flags */
    const char *attributes; /* FILE_STAT, FILE_LIST: extended attributes that begin with this are
                             * wanted ("user.note."); NULL: none */
};

struct file_read {
    const char *path;
    uint64_t offset;
    uint64_t length; /* 0: to the end */
};

enum { FILE_MODE_DEFAULT = 0xffffffff }; /* as an existing file has it; else 0644, 0755 */

struct file_write {
    const char *path; /* parent directories are made. The file appears whole, at FILE_END, or not */
    uint64_t mode;    /* FILE_MODE_DEFAULT or 0…07777 */
    const char *user; /* whose it is to be, with the parents that are made; NULL: as it was */
    struct slice attributes; /* "user.name=value" …: extended ones that it is to have */
};

enum file_mkdir_flags {
    MKDIR_NEW = 1 << 0, /* ALREADY_EXISTS when it does */
};

struct file_mkdir {
    const char *path; /* parents too; an existing directory is fine */
    uint64_t mode;
    const char *user; /* as file_write's */
    uint64_t flags;   /* enum file_mkdir_flags */
};

/* As rename(2): what is at the destination is replaced when it can be. Parents are made. */
struct file_move {
    const char *path;
    const char *destination;
    const char *user; /* whose parents that are made are to be */
};

struct file_remove {
    const char *path;
    uint64_t recursive;
};

enum file_type { FILE_REGULAR, FILE_DIRECTORY, FILE_SYMLINK, FILE_OTHER };

struct file_entry {
    const char *path; /* absolute; for FILE_LIST's items the name alone */
    uint64_t type;    /* enum file_type; symlinks are followed but for FILE_LIST's items */
    uint64_t mode;    /* 07777 */
    uint64_t size;
    uint64_t mtime_ms;
    uint64_t uid;
    uint64_t gid;
    const char
        *owner; /* names from the sandbox's /etc/passwd and group; the number if there is none */
    const char *group;
    const char *target;      /* of a symlink */
    uint64_t inode;          /* with size and mtime: changes whenever the content was replaced */
    struct slice attributes; /* those that were asked for: "user.name=value" … */
    uint64_t sorted; /* of the directory that a list begins with: what follows is in order. Only
                      * where FILE_SORTED asked for it; an agent of an older server never says it */
};

/* --- agent: trees --- */

struct file_tree_get {
    const char *path;
    uint64_t depth;         /* levels below the root; 1: as FILE_LIST */
    uint64_t entries_max;   /* more are left out, upper levels of a directory first */
    const char *attributes; /* as file_ref's */
};

struct file_tree_end {
    uint64_t cut; /* 1: entries or levels were left out */
};

struct file_tree_begin {
    const char *path; /* a directory, made if missing */
    const char *user; /* whose all of it is to be, as file_write's; NULL: as it was */
};

/* One of many that appear together, or not at all. */
struct file_tree_item {
    const char *path; /* absolute; parents are made */
    uint64_t mode; /* FILE_MODE_DEFAULT or 0…07777; not for directories that are there already */
    uint64_t is_directory;
};

/* --- agent: watching --- */

struct file_watch {
    const char *path;
    uint64_t recursive;
    struct slice ignore; /* globs: of a name, or of a path below the watched one */
};

enum file_op { OP_CREATE, OP_WRITE, OP_REMOVE, OP_RENAME, OP_CHMOD, OP_OVERFLOW };

struct file_event {
    uint64_t op;
    const char *dir;  /* absolute */
    const char *name; /* in it; absent: the watched directory itself */
    const char *text; /* of OP_OVERFLOW: what was lost */
};

/* --- agent: searching --- */

enum find_mode {
    FIND_NAMES = 0,   /* patterns are globs of a name, or of a path when they hold a slash */
    FIND_FUZZY = 1,   /* query's letters in this order; the best first */
    FIND_CONTENT = 2, /* lines of files that hold query, literally */
};

enum find_flags {
    FIND_FILES = 1 << 0, /* neither: both */
    FIND_DIRECTORIES = 1 << 1,
    FIND_NO_HIDDEN = 1 << 2, /* names that begin with a dot are left out, with all below */
    FIND_ANY_CASE = 1 << 3,
};

struct file_find {
    const char *path;
    uint64_t mode;  /* enum find_mode */
    uint64_t flags; /* enum find_flags */
    const char *query;
    struct slice patterns; /* none: everything */
    struct slice exclude;  /* names (globs) of directories that are not entered */
    uint64_t results_max;  /* 1…FIND_RESULTS_MAX */
    uint64_t time_ms;      /* then what was found so far is all; at most FIND_TIME_MAX_MS */
};

struct file_match {
    const char *path;  /* absolute */
    uint64_t type;     /* enum file_type */
    uint64_t score;    /* FIND_FUZZY: 0…1000 */
    uint64_t line;     /* FIND_CONTENT: from 1 */
    uint64_t column;   /* in bytes, from 1 */
    struct slice text; /* of the line, at most FIND_TEXT_MAX bytes around the match */
};

struct file_found {
    uint64_t total; /* what was sent */
    uint64_t cut;   /* 1: there may be more */
};

/* --- agent: history --- */

/*
 * All that is below the roots. Links are not followed, a root is not reached through one, and one
 * that is not there has no entries. Devices, sockets and pipes are counted and left out, and so is
 * what lies more than HISTORY_DEPTH_MAX levels deep. A
 * directory is watched for changes before it is read: after HISTORY_LISTED with `watched`,
 * AGENT_CLEAN and AGENT_PROCESS say whether something has changed since.
 */
struct history_list {
    struct slice roots;   /* absolute and normalized; at most HISTORY_ROOTS_MAX, none in another */
    struct slice ignore;  /* globs of a name, or of a path below its root; with all that is below */
    uint64_t entries_max; /* 1…HISTORY_ENTRIES_MAX: more are left out, and that is a cut */
};

enum history_entry_flags {
    HISTORY_NO_CONTENT = 1 << 0, /* HISTORY_READ: not a file, or larger than it may be */
    HISTORY_GONE = 1 << 1,       /* … or not there; then nothing but the path means anything */
    HISTORY_FRESH = 1 << 2,  /* changed a moment before it was looked at: the clock of files is so
                              * coarse that a later change can have the same times. Whoever compares
                              * by them reads such a file once more the next time */
    HISTORY_UNREAD = 1 << 3, /* HISTORY_READ: it could not be read, and may well be there; as with
                              * HISTORY_GONE, nothing but the path means anything */
};

struct history_entry {
    const char *path; /* absolute; any bytes but NUL. The roots themselves are entries, too */
    uint64_t type;    /* enum file_type; FILE_OTHER only from HISTORY_READ */
    uint64_t mode;    /* 07777 */
    uint64_t uid;
    uint64_t gid;
    uint64_t size;     /* of a file; 0 for others */
    uint64_t mtime_ns; /* Unix time */
    uint64_t ctime_ns;
    uint64_t inode;
    const char *target; /* of a symlink */
    uint64_t flags;     /* enum history_entry_flags */
};

struct history_listed {
    uint64_t entries;
    uint64_t left_out; /* devices, sockets, pipes, and what is deeper, or has a longer path, than
                        * can be told, all below it as one */
    uint64_t cut;      /* 1: there is more, or what could not be read */
    uint64_t watched;  /* 1: changes are noticed from here on. 0: AGENT_CLEAN will not say so */
    uint64_t compares; /* 1: it knows was_inode of struct history_item; agents once did not */
};

struct history_read {
    struct slice roots; /* as history_list's: a path outside of them is INVALID_PATH */
    struct slice paths; /* at most HISTORY_READ_MAX */
    uint64_t size_max;  /* a larger file is HISTORY_NO_CONTENT */
};

/* A file gives exactly as many bytes as its HISTORY_ENTRY said, whatever happens to it meanwhile.
 */
struct history_read_end {
    uint64_t torn; /* 1: it was changed while it was read, so this is not what it was at any time */
};

struct history_apply {
    struct slice roots; /* as history_list's: nothing outside of them is touched */
};

enum history_op {
    HISTORY_REMOVE = 0,     /* fine when it is not there; a directory that is not empty stays */
    HISTORY_FILE = 1,       /* `size` bytes follow; appears whole, in the place of what was there */
    HISTORY_DIRECTORY = 2,  /* fine when it is one */
    HISTORY_SYMLINK = 3,    /* in the place of what was there */
    HISTORY_ATTRIBUTES = 4, /* mode and owner of the directory that is there */
};

struct history_item {
    uint64_t op; /* enum history_op */
    const char *path;
    uint64_t mode; /* 0…07777; not a symlink's */
    uint64_t uid;
    uint64_t gid;
    uint64_t size;
    const char *target;
    uint64_t only_new; /* 1: history knows of nothing there, so what is there anyway (a file too
                        * large to be kept, a socket) stays, and that is a failure; a directory
                        * is no failure where one is wanted */
    /* What the last listing, or reading, saw there: what is another by now, right before it would
     * be replaced or removed, stays, and that is a failure. Only for who has said `compares`. */
    uint64_t was_inode;    /* 0: nothing is compared */
    uint64_t was_ctime_ns; /* 0: it was a directory, which goes only when it is empty */
};

/* One item's failure does not keep the others from being tried. */
struct history_applied {
    uint64_t done;
    uint64_t failed;
    const char *failure; /* for people: the first one */
    struct slice left;   /* the paths of the first HISTORY_LEFT_SHOWN that failed, as far as there
                          * is room, each followed by why */
};

/* --- agent: uploads in parts --- */

struct upload_ref {
    const char *id;
};

struct upload_part {
    const char *id;
    uint64_t number; /* 1…UPLOAD_PARTS_MAX; the same number again replaces it */
};

struct upload_complete {
    const char *id;
    struct slice parts; /* "NUMBER" or "NUMBER:ETAG" …; none: all that are there */
};

struct upload_about {
    const char *id;
    const char *path;
    uint64_t mode;
    uint64_t started_ms;
};

struct upload_part_about {
    uint64_t number;
    uint64_t size;
    const char *etag; /* MD5, hexadecimal */
};

/* --- egress --- */

/* As struct warden_hello, for the egress process: a higher epoch closes earlier connections. */
struct egress_hello {
    uint64_t epoch;
};

struct egress_about {
    uint64_t version;
    uint64_t started_ms;   /* Unix time: another one than last time has to be told everything */
    const char *resolvers; /* for people: the servers that names are asked of */
    uint64_t sandboxes;
    uint64_t connections; /* that are open */
};

/* A sandbox's policy, all of it: the first one, or instead of the one before. */
struct egress_set {
    const char *id;
    const char *address;   /* by which it is known: "10.201.0.7"; one that somebody else had is
                              taken over, and he is dropped */
    const char *address6;  /* "fd00::7"; NULL: none */
    struct slice policy;   /* as net_policy_pack() makes it */
    const char *workspace; /* whose secrets its requests may carry; NULL: nobody's */
    uint64_t log_after;    /* the number of the last entry of its log, should this process not know
                              the sandbox: others follow */
};

/* The headers of a sandbox's policy with their values in them, which nobody else is told. */
struct egress_secrets {
    const char *id;
    struct slice headers; /* a list of strings, four each: host ("api.example.com",
                             "*.example.com"), field name, whole value, the secret in it; an empty
                             value: there is none, and requests to the host fail */
    /* With these, TLS to those hosts is ended by the egress process, with certificates of the
     * sandbox's own authority; without, it passes as it is, and has no header added. */
    const char *ca_certificate; /* PEM; NULL: none */
    struct slice ca_key;        /* PKCS #8, DER */
};

struct egress_ref {
    const char *id;
};

struct egress_keep {
    struct slice ids; /* a list of strings */
};

struct egress_log_read {
    const char *id;
    uint64_t after; /* a sequence: those behind it only; 0: all that are kept */
    uint64_t max;   /* 0, or more than EGRESS_LOG_MAX: that many. The newest, if there are more */
};

/* What was changed in the logs of all sandboxes since, in that order; waits until there is
 * something, for a while. */
struct egress_log_pull {
    uint64_t after; /* a change of this process's (EGRESS_ABOUT's started_ms tells which); 0: all */
};

enum egress_log_kind { EGRESS_DNS = 1, EGRESS_HTTP = 2, EGRESS_TLS = 3, EGRESS_DIRECT = 4 };

/* What was asked for, and what became of it. The same again within a while counts up. */
struct egress_log_entry {
    uint64_t sequence; /* counts up over all entries of the sandbox */
    uint64_t first_ms; /* Unix time */
    uint64_t last_ms;
    uint64_t kind;       /* enum egress_log_kind */
    uint64_t verdict;    /* enum net_verdict */
    const char *name;    /* as far as it was understood; NULL: none */
    const char *address; /* that it led to, or was sent to; NULL: none */
    uint64_t port;
    uint64_t type;                /* of a question to DNS: 1 is A, 28 is AAAA, … */
    uint64_t bytes_in, bytes_out; /* into the sandbox, out of it */
    uint64_t count;
    uint64_t open;      /* 1: a connection that is still there */
    const char *detail; /* for people: what was wrong; NULL: nothing to say */
    uint64_t protocol;  /* as in the IP header; 0: goes without saying */
    const char *id;     /* of the sandbox */
    uint64_t change;    /* counts up over all changes of all entries of all sandboxes */
};

extern const struct wire_schema wire_ok_schema, wire_error_schema;
extern const struct wire_schema warden_hello_schema, warden_about_schema, warden_start_schema,
    warden_started_schema, warden_stop_schema, warden_remove_schema, warden_pause_schema,
    warden_resume_schema, warden_list_schema, warden_entry_schema, warden_exited_schema,
    warden_stats_schema, warden_sample_schema, warden_clone_schema, warden_update_schema,
    warden_fits_schema, warden_machine_ask_schema, warden_machine_schema, warden_claim_schema;
extern const struct wire_schema warden_helper_schema;
extern const struct wire_schema warden_socket_schema, warden_delegate_schema, warden_net_set_schema,
    warden_net_admit_schema, warden_net_listen_schema, warden_net_count_schema,
    warden_net_counted_schema;
extern const struct wire_schema agent_hello_schema, agent_about_schema, agent_exec_schema,
    agent_wait_schema, agent_get_schema, agent_list_schema, agent_process_schema, agent_stop_schema,
    agent_log_read_schema, agent_log_schema, agent_cancel_schema, agent_follow_schema,
    agent_gap_schema, agent_stdin_schema, agent_stdin_end_schema, agent_ports_schema,
    agent_port_schema, agent_limits_schema, agent_signal_schema, agent_clean_ask_schema,
    agent_clean_schema;
extern const struct wire_schema agent_terminal_open_schema, agent_terminal_schema,
    agent_terminal_list_schema, agent_terminal_attach_schema, agent_terminal_output_schema,
    agent_terminal_exit_schema, agent_terminal_input_schema, agent_terminal_taken_schema,
    agent_terminal_resize_schema, agent_terminal_close_schema, agent_terminal_hang_up_schema;
extern const struct wire_schema agent_changes_schema, agent_change_schema, agent_timed_read_schema,
    agent_timed_schema;
extern const struct wire_schema file_stat_schema, file_list_schema, file_read_schema,
    file_write_schema, file_mkdir_schema, file_remove_schema, file_entry_schema, file_end_schema;
extern const struct wire_schema file_tree_schema, file_tree_end_schema, file_tree_put_schema,
    file_tree_item_schema, file_watch_schema, file_event_schema, file_find_schema,
    file_match_schema, file_found_schema, file_move_schema;
extern const struct wire_schema history_list_schema, history_entry_schema, history_listed_schema,
    history_read_schema, history_read_end_schema, history_apply_schema, history_item_schema,
    history_applied_schema, history_watch_schema;
extern const struct wire_schema upload_start_schema, upload_part_schema, upload_complete_schema,
    upload_abort_schema, upload_parts_schema, upload_list_schema, upload_about_schema,
    upload_part_about_schema;

extern const struct wire_schema egress_hello_schema, egress_about_schema, egress_set_schema,
    egress_drop_schema, egress_keep_schema, egress_log_read_schema, egress_log_entry_schema,
    egress_log_pull_schema, egress_secrets_schema;

/* All of them, for tests and the fuzzer; NULL at the end. */
extern const struct wire_schema *const wire_schemas[];

/* Appends a WIRE_ERROR frame made from err. */
void wire_encode_error(struct buf *out, uint32_t id, const struct error *err);

/* The error that a WIRE_ERROR payload holds. Always returns -1. */
int wire_take_error(struct slice payload, struct error *err);
