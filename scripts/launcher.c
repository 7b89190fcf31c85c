/* The beginning of the single binary: it unpacks the program that is appended to it, once, and becomes it.

   The program is kept in a folder of the user's cache, named by what is in it, so later starts unpack nothing:

       $CACHE_DIRECTORY (systemd's), else $XDG_CACHE_HOME/docsmith, else $HOME/.cache/docsmith

   Whoever can write there can have us run what they like. So that folder and all above it must belong to root or to us
   and be writable by nobody else; otherwise, and where it cannot be written or may not hold programs, the program is
   unpacked into a temporary folder of its own, at each start, which service/main/process/frozen.py deletes at the end.

   A folder gets its name once it is complete. After a power cut, complete files can be empty or torn all the same: what
   was not checked since the machine started is checked against the checksums of the table below.

   As the first process of a container it stays, passes signals on and reaps what others leave behind, and the program is
   its child.

   Appended by scripts/pack_binary.py: a table of lines ("d 755 0 0 NAME" for folders, "f MODE SIZE CRC NAME" for files,
   "l 777 0 0 NAME\tTARGET" for links), the files' bytes as one zlib stream, and the trailer.

   It is linked with libz.so.1, which every glibc system has; its four functions are declared here (zlib.h), so that
   building needs a compiler and nothing else. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

struct z_stream {
    const unsigned char *next_in;
    unsigned int avail_in;
    unsigned long total_in;
    unsigned char *next_out;
    unsigned int avail_out;
    unsigned long total_out;
    const char *msg;
    void *state, *zalloc, *zfree, *opaque;
    int data_type;
    unsigned long adler, reserved;
};
int inflateInit_(struct z_stream *stream, const char *version, int size);
int inflate(struct z_stream *stream, int flush);
int inflateEnd(struct z_stream *stream);
unsigned long crc32(unsigned long crc, const unsigned char *bytes, unsigned int size);
enum { Z_OK = 0, Z_STREAM_END = 1 };

static const char MAGIC[16] = "docsmith-packed\n";
static const char PROGRAM[] = "docsmith"; /* in the folder */
static const char IN_USE[] = "docsmith-in-use"; /* locked while somebody runs from the folder: service/main/process/frozen.py */
static const char CHECKED[] = "docsmith-checked"; /* holds the boot id of the last check */

struct trailer { /* the last bytes of the file; numbers as this processor writes them */
    uint64_t table_size, stream_size;
    char key[32]; /* hex, of table and stream */
    char magic[16];
};

struct entry {
    char kind;
    unsigned int mode;
    unsigned long size, crc;
    const char *name, *target;
};

static const unsigned char *stream;
static size_t stream_size;
static struct entry *entries;
static size_t entries_count;
static char key[33];
static char boot[64];
static char self[PATH_MAX];
static char why[PATH_MAX * 2]; /* the last folder that would not do, and why */
static int is_damaged;         /* what is appended */

static const char DAMAGED[] = "this file is damaged: download it again and compare SHA256SUMS";

static void die(const char *sentence) {
    fprintf(stderr, "docsmith: %s\n", sentence);
    exit(1);
}

static int not_this(const char *folder, const char *reason) {
    snprintf(why, sizeof why, "%s: %s", folder, reason);
    return 0;
}

static int join(char *to, const char *folder, const char *name) {
    return snprintf(to, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

/* The first process of a container. The kernel makes all orphans its children (those of a command that ended, say), which
   stay as zombies until it asks for them, and keeps from it the signals that it has no handler for (yet). A program is
   made for neither, so ours becomes a child. */

static void be_meant(const char *variable, pid_t us) {
    /* What is passed to process 1 is passed to the program. */
    char number[16];
    const char *meant = getenv(variable);
    snprintf(number, sizeof number, "%ld", (long)us);
    if (meant != NULL && strcmp(meant, "1") == 0) setenv(variable, number, 1);
}

static void attend(void) {
    /* Returns in the program's process; does nothing in one that is not the first. */
    sigset_t all, before;
    if (getpid() != 1) return;
    signal(SIGCHLD, SIG_DFL);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t program = fork();
    if (program <= 0) { /* without a second process it goes as well, but for the above */
        sigprocmask(SIG_SETMASK, &before, NULL);
        be_meant("LISTEN_PID", getpid());
        be_meant("WATCHDOG_PID", getpid());
        return;
    }
    for (;;) {
        siginfo_t told;
        int status, number = sigwaitinfo(&all, &told);
        pid_t ended;
        if (number > 0 && number != SIGCHLD && told.si_code != SI_KERNEL) /* Ctrl-C comes to both of us by itself */
            kill(program, number);
        while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
            if (ended == program) _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
}

/* What is appended. */

static void read_self(void) {
    struct trailer end;
    struct stat status;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0 && realpath((const char *)getauxval(AT_EXECFN), self) == NULL) die("cannot find its own file");
    if (length >= 0) self[length] = 0;
    int file = open(length < 0 ? self : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) die("cannot read its own file");
    size_t size = (size_t)status.st_size;
    if (size < sizeof end) die(DAMAGED);
    const char *all = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (all == MAP_FAILED) die("cannot read its own file");
    close(file);
    memcpy(&end, all + size - sizeof end, sizeof end);
    size_t room = size - sizeof end;
    if (memcmp(end.magic, MAGIC, sizeof MAGIC) != 0 || end.table_size > room || end.stream_size > room - end.table_size)
        die(DAMAGED);
    memcpy(key, end.key, sizeof end.key);
    stream_size = end.stream_size;
    stream = (const unsigned char *)all + room - stream_size;
    char *table = strndup(all + room - stream_size - end.table_size, end.table_size);
    if (table == NULL) die("out of memory");
    for (const char *at = table; *at; at++) entries_count += *at == '\n';
    entries = calloc(entries_count + 1, sizeof *entries);
    if (entries == NULL) die("out of memory");
    char *rest = table, *line;
    for (size_t i = 0; i < entries_count && (line = strsep(&rest, "\n")) != NULL; i++) {
        int name = 0;
        struct entry *one = &entries[i];
        if (sscanf(line, "%c %o %lu %lx %n", &one->kind, &one->mode, &one->size, &one->crc, &name) < 4 || name == 0)
            die(DAMAGED);
        one->name = line + name;
        char *tab = strchr(line + name, '\t');
        if (tab != NULL) *tab = 0;
        one->target = tab == NULL ? NULL : tab + 1;
    }
}

static void read_boot_id(void) {
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, boot, sizeof boot - 1);
    if (file >= 0) close(file);
    boot[length > 0 ? length : 0] = 0; /* unknown: then it is checked at each start */
}

/* The folder that keeps it. */

static int is_ours_alone(const char *folder) {
    /* Also all above it: who can rename a folder above can put another in its place. */
    char path[PATH_MAX];
    if (realpath(folder, path) == NULL) return not_this(folder, strerror(errno));
    for (int is_last = 1;; is_last = 0) {
        struct stat status;
        if (lstat(*path ? path : "/", &status) != 0) return not_this(folder, strerror(errno));
        int others_write = (status.st_mode & 022) != 0 && (is_last || (status.st_mode & S_ISVTX) == 0);
        if (!S_ISDIR(status.st_mode) || others_write || (status.st_uid != 0 && status.st_uid != geteuid()))
            return not_this(folder, "others can write there");
        char *slash = strrchr(path, '/');
        if (slash == NULL || *path == 0) return 1;
        *slash = 0;
    }
}

static int may_hold_programs(const char *folder) {
    struct statvfs status;
    if (statvfs(folder, &status) != 0) return not_this(folder, strerror(errno));
    return (status.f_flag & ST_NOEXEC) == 0 ? 1 : not_this(folder, "it may hold no programs (noexec)");
}

static int write_all(int file, const unsigned char *bytes, size_t size) {
    while (size > 0) {
        ssize_t written = write(file, bytes, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return 0;
        bytes += written, size -= (size_t)written;
    }
    return 1;
}

static int write_file(const char *folder, const char *name, const char *text) {
    /* In one step: others may read it meanwhile. */
    char path[PATH_MAX], made[PATH_MAX], unfinished[64];
    snprintf(unfinished, sizeof unfinished, ".%s-%ld", name, (long)getpid());
    if (!join(path, folder, name) || !join(made, folder, unfinished)) return 0;
    int file = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0) return 0;
    int done = write_all(file, (const unsigned char *)text, strlen(text));
    if (close(file) != 0 || !done || rename(made, path) != 0) {
        unlink(made);
        return 0;
    }
    return 1;
}

static int is_intact(const char *folder) {
    static unsigned char buffer[1 << 18];
    char path[PATH_MAX], checked[64] = "";
    if (!join(path, folder, CHECKED)) return 0;
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, checked, sizeof checked - 1);
    close(file);
    int is_checked = length > 0 && *boot && strcmp(checked, boot) == 0;
    for (size_t i = 0; i < entries_count; i++) {
        const struct entry *one = &entries[i];
        struct stat status;
        if (!join(path, folder, one->name) || lstat(path, &status) != 0) return 0;
        if (one->kind != 'f') continue;
        if (!S_ISREG(status.st_mode) || (unsigned long)status.st_size != one->size) return 0;
        if (is_checked) continue;
        if ((file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) < 0) return 0;
        unsigned long crc = 0;
        while ((length = read(file, buffer, sizeof buffer)) > 0) crc = crc32(crc, buffer, (unsigned int)length);
        close(file);
        if (length < 0 || crc != one->crc) return 0;
    }
    if (!is_checked && *boot) write_file(folder, CHECKED, boot); /* where it cannot be, the next start checks again */
    return 1;
}

static int lock(const char *folder) {
    /* Shared, and kept through exec: nobody deletes the folder while we run. -1: somebody did. */
    char path[PATH_MAX];
    struct stat here, locked;
    if (!join(path, folder, IN_USE)) return -1;
    int file = open(path, O_RDONLY | O_NOFOLLOW);
    if (file < 0) return -1;
    if (flock(file, LOCK_SH | LOCK_NB) == 0 && fstat(file, &locked) == 0 && stat(path, &here) == 0 &&
        here.st_ino == locked.st_ino && here.st_dev == locked.st_dev)
        return file;
    close(file);
    return -1;
}

/* Unpacking. */

static int unpack_files(const char *folder) {
    static unsigned char buffer[1 << 18];
    char path[PATH_MAX];
    struct z_stream z = {0};
    if (inflateInit_(&z, "1.2.11", (int)sizeof z) != Z_OK) return not_this(folder, "zlib cannot be used");
    z.next_in = stream;
    size_t left = stream_size;
    int state = Z_OK;
    for (size_t i = 0; i < entries_count; i++) {
        const struct entry *one = &entries[i];
        if (!join(path, folder, one->name)) return not_this(folder, "its name is too long");
        if (one->kind == 'd') {
            if (mkdir(path, 0755) != 0) return not_this(path, strerror(errno));
            continue;
        }
        if (one->kind == 'l') {
            if (one->target == NULL || symlink(one->target, path) != 0) return not_this(path, strerror(errno));
            continue;
        }
        int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, one->mode);
        if (file < 0) return not_this(path, strerror(errno));
        unsigned long crc = 0;
        for (unsigned long wanted = one->size; wanted > 0;) {
            z.next_out = buffer;
            z.avail_out = (unsigned int)(wanted < sizeof buffer ? wanted : sizeof buffer);
            while (z.avail_out > 0 && state == Z_OK) {
                if (z.avail_in == 0) {
                    z.avail_in = (unsigned int)(left < (1u << 30) ? left : (1u << 30));
                    left -= z.avail_in;
                }
                state = inflate(&z, 0);
            }
            unsigned int got = (unsigned int)(z.next_out - buffer);
            if (got == 0) break;
            crc = crc32(crc, buffer, got);
            wanted -= got;
            if (!write_all(file, buffer, got)) {
                not_this(path, strerror(errno));
                close(file);
                inflateEnd(&z);
                return 0;
            }
        }
        if (close(file) != 0) return not_this(path, strerror(errno));
        if (crc != one->crc) {
            is_damaged = 1;
            inflateEnd(&z);
            return 0;
        }
    }
    inflateEnd(&z);
    return 1;
}

static void delete_unpacked(const char *folder) {
    char path[PATH_MAX];
    for (size_t i = entries_count; i-- > 0;) { /* what is in a folder stands after it */
        if (!join(path, folder, entries[i].name)) continue;
        if (entries[i].kind == 'd') rmdir(path); else unlink(path);
    }
    if (join(path, folder, CHECKED)) unlink(path);
    if (join(path, folder, IN_USE)) unlink(path);
    rmdir(folder);
}

static int unpack(const char *beside, char *folder) {
    /* Into a new folder beside the given path; the lock that is held on it, or -1. */
    if (snprintf(folder, PATH_MAX, "%s-XXXXXX", beside) >= PATH_MAX || mkdtemp(folder) == NULL) {
        not_this(beside, strerror(errno));
        return -1;
    }
    char path[PATH_MAX];
    join(path, folder, IN_USE);
    int made = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int held = made < 0 ? -1 : lock(folder);
    if (made >= 0) close(made);
    if (held < 0) not_this(folder, strerror(errno));
    if (held >= 0 && unpack_files(folder)) {
        if (write_file(folder, CHECKED, boot)) return held;
        not_this(folder, strerror(errno));
    }
    delete_unpacked(folder);
    if (held >= 0) close(held);
    if (is_damaged) die(DAMAGED);
    return -1;
}

/* Becoming it. */

static void become(const char *folder, int held, const char *is_temporary, char **argv) {
    char path[PATH_MAX], number[16];
    snprintf(number, sizeof number, "%d", held);
    if (setenv("_DOCSMITH_PROGRAM", self, 1) || setenv("_DOCSMITH_LOCK", number, 1) ||
        setenv("_DOCSMITH_TEMPORARY", is_temporary, 1) || !join(path, folder, PROGRAM))
        die("out of memory");
    execv(path, argv);
    not_this(path, strerror(errno));
}

static void run_kept(const char *base, char **argv) {
    char folder[PATH_MAX], unpacked[PATH_MAX];
    if (mkdir(base, 0755) != 0 && errno != EEXIST) {
        not_this(base, strerror(errno));
        return;
    }
    if (!is_ours_alone(base) || !may_hold_programs(base) || !join(folder, base, key)) return;
    int held = lock(folder);
    if (held >= 0 && is_intact(folder)) become(folder, held, "", argv);
    if (held >= 0) {
        /* Damaged, or it may not be run. Others may run from it: it is put aside, for the next start to delete. */
        close(held);
        if (snprintf(unpacked, sizeof unpacked, "%s-damaged-%ld", folder, (long)getpid()) >= PATH_MAX) return;
        if (rename(folder, unpacked) != 0) return;
    }
    if ((held = unpack(folder, unpacked)) < 0) return;
    chmod(unpacked, 0755);
    if (rename(unpacked, folder) != 0) { /* somebody else was faster */
        delete_unpacked(unpacked);
        close(held);
        held = lock(folder);
        if (held < 0 || !is_intact(folder)) return;
    }
    become(folder, held, "", argv);
    close(held);
}

static void run_temporary(const char *base, char **argv) {
    char beside[PATH_MAX], folder[PATH_MAX];
    if (!may_hold_programs(base) || !join(beside, base, PROGRAM)) return;
    int held = unpack(beside, folder);
    if (held < 0) return;
    become(folder, held, "1", argv);
    delete_unpacked(folder);
    close(held);
}

static void open_standard_streams(void) {
    /* Closed ones would be given to the next files that are opened, and what is printed would be written into those. */
    int file;
    while ((file = open("/dev/null", O_RDWR)) >= 0 && file <= STDERR_FILENO) continue;
    if (file > STDERR_FILENO) close(file);
}

static const char *absolute(const char *variable) {
    const char *value = secure_getenv(variable);
    return value != NULL && *value == '/' ? value : NULL;
}

int main(int argc, char **argv) {
    (void)argc;
    char base[PATH_MAX];
    const char *from;
    open_standard_streams();
    attend();
    read_self();
    read_boot_id();
    if ((from = absolute("CACHE_DIRECTORY")) != NULL) {
        snprintf(base, sizeof base, "%.*s", (int)strcspn(from, ":"), from);
        run_kept(base, argv);
    }
    if ((from = absolute("XDG_CACHE_HOME")) != NULL) {
        mkdir(from, 0700);
        if (join(base, from, PROGRAM)) run_kept(base, argv);
    } else if ((from = absolute("HOME")) != NULL) {
        if (join(base, from, ".cache")) mkdir(base, 0700);
        if (join(base, from, ".cache/docsmith")) run_kept(base, argv);
    }
    if ((from = absolute("TMPDIR")) != NULL) run_temporary(from, argv);
    run_temporary("/tmp", argv);
    run_temporary("/var/tmp", argv);
    fprintf(stderr, "docsmith: there is no folder to unpack the program into (%s); set XDG_CACHE_HOME to one that can be "
                    "written and may hold programs\n", why);
    return 1;
}
