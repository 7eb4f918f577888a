/* Wall clock of a single process. Loaded before the C library (LD_PRELOAD), this adds the value in a
 * file to the wall clock, and leaves all other clocks alone. So a process can have a clock that is
 * wrong, or stepped, on a machine whose clock is right.
 *
 * The file contains nanoseconds: eight bytes, signed, in the machine's byte order. It is mapped, so
 * the next read of the clock sees a step.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

/* 0 until the file is mapped: before that no read of the clock matters. */
static const int64_t *offset;

static void fail(const char *what, size_t length) {
    /* A run whose clocks are right would prove nothing. */
    ssize_t written = write(2, what, length);
    (void)written;
    _exit(97);
}

__attribute__((constructor)) static void map_offset(void) {
    const char *path = getenv("ANTEROOM_CLOCK_OFFSET");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) {
        fail("no file in ANTEROOM_CLOCK_OFFSET\n", 33);
    }
    void *mapped = mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
        fail("ANTEROOM_CLOCK_OFFSET cannot be mapped\n", 39);
    }
    close(file);
    offset = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *shown) {
    int failed = (int)syscall(SYS_clock_gettime, clock, shown);
    int is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if (failed || !is_wall || !offset) {
        return failed;
    }
    int64_t add = __atomic_load_n(offset, __ATOMIC_RELAXED);
    int64_t nanoseconds = shown->tv_nsec + add % SECOND;
    shown->tv_sec += add / SECOND;
    if (nanoseconds < 0) {
        nanoseconds += SECOND;
        shown->tv_sec -= 1;
    } else if (nanoseconds >= SECOND) {
        nanoseconds -= SECOND;
        shown->tv_sec += 1;
    }
    shown->tv_nsec = nanoseconds;
    return 0;
}

int gettimeofday(struct timeval *restrict shown, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) {
        return -1;
    }
    shown->tv_sec = now.tv_sec;
    shown->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *shown) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) {
        return -1;
    }
    if (shown) {
        *shown = now.tv_sec;
    }
    return now.tv_sec;
}
