/*
 * The protocol between sudo and the root service: bytes and file descriptors over a unix stream
 * socket.
 *
 * Threats: a sender may forge everything but its identity, which the kernel attaches to each message
 * (SCM_CREDENTIALS). SO_PEERCRED is no evidence, because gVisor returns the identity of the process
 * that asks. The kernel closes surplus descriptors, and one process serves one connection.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

const int forwarded_signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
                                 SIGUSR2, SIGALRM, SIGTSTP, SIGCONT, SIGWINCH};
const size_t forwarded_count = LENGTH(forwarded_signals);

union control {
  struct cmsghdr align;
  char bytes[CMSG_SPACE(MAX_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

/* The descriptors are sent with the first byte. */
int send_bytes(int socket, const void *data, size_t size, const int *fds, int fd_count) {
  for (size_t sent = 0; sent < size;) {
    union control control = {0};
    struct iovec part = {(char *)data + sent, size - sent};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd_count > 0) {
      message.msg_control = &control;
      message.msg_controllen = CMSG_SPACE((size_t)fd_count * sizeof(int));
      struct cmsghdr *head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN((size_t)fd_count * sizeof(int));
      memcpy(CMSG_DATA(head), fds, (size_t)fd_count * sizeof(int));
    }
    ssize_t count = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return -1;
    sent += (size_t)count;
    fd_count = 0;
  }
  return 0;
}

/* All messages must come from the same user, and descriptors only with the first message. */
static int unpack(struct msghdr *message, struct parcel *parcel) {
  int known = 0;
  for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
    if (head->cmsg_level != SOL_SOCKET) return -1;
    if (head->cmsg_type == SCM_RIGHTS) {
      size_t size = head->cmsg_len - CMSG_LEN(0);
      if (parcel->known || size > sizeof parcel->fds) return -1;
      memcpy(parcel->fds, CMSG_DATA(head), size);
      parcel->fd_count = (int)(size / sizeof(int));
    } else if (head->cmsg_type == SCM_CREDENTIALS && head->cmsg_len == CMSG_LEN(sizeof(struct ucred))) {
      struct ucred sender;
      memcpy(&sender, CMSG_DATA(head), sizeof sender);
      if (parcel->known && parcel->uid != sender.uid) return -1;
      parcel->uid = sender.uid;
      parcel->gid = sender.gid;
      known = 1;
    }
  }
  if (!known || message->msg_flags & MSG_CTRUNC) return -1;
  parcel->known = 1;
  return 0;
}

int receive_bytes(int socket, void *data, size_t size, struct parcel *parcel) {
  for (size_t got = 0; got < size;) {
    union control control;
    struct iovec part = {(char *)data + got, size - got};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1,
                             .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (count <= 0 || unpack(&message, parcel) < 0) return -1;
    got += (size_t)count;
  }
  return 0;
}

int receive_reply(int socket, struct reply *reply) {
  ssize_t count = recv(socket, reply, sizeof *reply, MSG_WAITALL);
  reply->text[sizeof reply->text - 1] = '\0';
  return count == sizeof *reply ? 0 : -1;
}

/* Never blocks: a client that does not read its replies loses them. */
void send_reply(int socket, enum reply_kind kind, int value, const char *text) {
  struct reply reply = {.kind = (uint8_t)kind, .value = (uint8_t)value};
  snprintf(reply.text, sizeof reply.text, "%s", text);
  ssize_t sent = send(socket, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)sent;
}
