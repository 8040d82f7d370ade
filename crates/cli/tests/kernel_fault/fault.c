/* Loaded by LD_PRELOAD into the unchanged greenroom: makes the clock fail once on the kernel's thread, which Rust's standard
 * library answers with a panic. Everything is steered by files in the directory that GREENROOM_TEST_FAULT names:
 *
 *   idle    the next time the kernel's thread reads the clock, it fails
 *   commit  the clock fails right after the kernel's next sync to disk: the batch is written, and nobody has heard of it
 *   hold    from then on no other thread gets a word to standard error out while this file is there, so that the test has time
 *           to look at a host whose kernel is dead
 *   fired   written here when the clock has failed
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_int has_fired;
static _Thread_local int fails_next;

static const char *file(char *path, const char *name) {
    const char *directory = getenv("GREENROOM_TEST_FAULT");
    snprintf(path, 4096, "%s/%s", directory ? directory : "/nonexistent", name);
    return path;
}

static int exists(const char *name) {
    char path[4096];
    return access(file(path, name), F_OK) == 0;
}

static int is_kernel_thread(void) {
    char name[16] = "";
    return pthread_getname_np(pthread_self(), name, sizeof name) == 0 && strcmp(name, "kernel") == 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (!atomic_load(&has_fired) && is_kernel_thread() && (fails_next || exists("idle"))) {
        char path[4096];
        atomic_store(&has_fired, 1);
        close(open(file(path, "fired"), O_CREAT | O_WRONLY, 0600));
        errno = EINVAL;
        return -1;
    }
    return real(clock, time);
}

static int sync_with(const char *name, int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    int result = real(fd);
    if (is_kernel_thread() && exists("commit")) fails_next = 1;
    return result;
}

int fsync(int fd) { return sync_with("fsync", fd); }
int fdatasync(int fd) { return sync_with("fdatasync", fd); }

ssize_t write(int fd, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (fd == STDERR_FILENO && atomic_load(&has_fired) && !is_kernel_thread())
        while (exists("hold")) usleep(1000);
    return real(fd, bytes, count);
}
