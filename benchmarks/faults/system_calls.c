/* Counts calls that change files below one directory and lets the n-th of them fail; loaded before libc (LD_PRELOAD). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char below[PATH_MAX];
static char failed[64];
static atomic_int calls;
static int at, code, armed;

/* From now on, in this process: let call number `n` (from 1; 0 for none) fail with `error`. */
void faults_arm(const char *directory, int n, int error) {
    strncpy(below, directory, sizeof below - 1);
    at = n;
    code = error;
    atomic_store(&calls, 0);
    armed = 1;
}

int faults_calls(void) { return atomic_load(&calls); }
const char *faults_failed(void) { return failed; }

static int fails(const char *name, const char *path) {
    if (!armed || path == NULL || strncmp(path, below, strlen(below)) != 0) return 0;
    if (atomic_fetch_add(&calls, 1) + 1 != at) return 0;
    strncpy(failed, name, sizeof failed - 1);
    errno = code;
    return 1;
}

static int fails_at(const char *name, int directory, const char *path) {
    char link[64], place[PATH_MAX];
    if (!armed) return 0;
    if (path != NULL && path[0] == '/') return fails(name, path);
    if (directory == AT_FDCWD) return getcwd(place, sizeof place) ? fails(name, place) : 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    ssize_t size = readlink(link, place, sizeof place - 1);
    if (size < 0) return 0;
    place[size] = 0;
    return fails(name, place);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define MODE(last) mode_t mode = 0; va_list rest; va_start(rest, last); mode = va_arg(rest, mode_t); va_end(rest)

int open(const char *path, int flags, ...) {
    MODE(flags);
    return fails_at("open", AT_FDCWD, path) ? -1 : REAL(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE(flags);
    return fails_at("open", AT_FDCWD, path) ? -1 : REAL(open64)(path, flags, mode);
}
int openat(int directory, const char *path, int flags, ...) {
    MODE(flags);
    return fails_at("open", directory, path) ? -1 : REAL(openat)(directory, path, flags, mode);
}
int openat64(int directory, const char *path, int flags, ...) {
    MODE(flags);
    return fails_at("open", directory, path) ? -1 : REAL(openat64)(directory, path, flags, mode);
}
ssize_t write(int file, const void *data, size_t size) {
    return fails_at("write", file, NULL) ? -1 : REAL(write)(file, data, size);
}
ssize_t pwrite(int file, const void *data, size_t size, off_t place) {
    return fails_at("write", file, NULL) ? -1 : REAL(pwrite)(file, data, size, place);
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t place) {
    return fails_at("write", file, NULL) ? -1 : REAL(pwrite64)(file, data, size, place);
}
ssize_t writev(int file, const struct iovec *parts, int count) {
    return fails_at("write", file, NULL) ? -1 : REAL(writev)(file, parts, count);
}
int ftruncate64(int file, off64_t size) { return fails_at("ftruncate", file, NULL) ? -1 : REAL(ftruncate64)(file, size); }
int fsync(int file) { return fails_at("fsync", file, NULL) ? -1 : REAL(fsync)(file); }
int fdatasync(int file) { return fails_at("fsync", file, NULL) ? -1 : REAL(fdatasync)(file); }
int mkdir(const char *path, mode_t mode) { return fails_at("mkdir", AT_FDCWD, path) ? -1 : REAL(mkdir)(path, mode); }
int rename(const char *from, const char *to) {
    return fails_at("rename", AT_FDCWD, to) ? -1 : REAL(rename)(from, to);
}
int renameat(int old, const char *from, int new, const char *to) {
    return fails_at("rename", new, to) ? -1 : REAL(renameat)(old, from, new, to);
}
