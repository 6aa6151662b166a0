/* decoder_wire.c - sends and receives one message with an optional descriptor: unix(7), SCM_RIGHTS. */
#define _GNU_SOURCE
#include "exec/data/image/decoder_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

typedef union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
} control;

int hp_wire_send(int socket, const void *message, size_t bytes, int fd) {
    control c = {.bytes = {0}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = bytes};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        m.msg_control = c.bytes, m.msg_controllen = sizeof c.bytes;
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(h), &fd, sizeof fd);
    }
    ssize_t n;
    do n = sendmsg(socket, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)bytes ? 0 : -1;
}

ssize_t hp_wire_receive(int socket, void *message, size_t most, int *fd) {
    control c = {.bytes = {0}};
    struct iovec part = {.iov_base = message, .iov_len = most};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd) m.msg_control = c.bytes, m.msg_controllen = sizeof c.bytes, *fd = -1;
    ssize_t n;
    do n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    const struct cmsghdr *h = fd && n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (h && h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(sizeof *fd))
        memcpy(fd, CMSG_DATA(h), sizeof *fd);
    return n;
}
