/*
 * Library that the loader puts before Chromium. Sandboxes of other tests add and remove network interfaces of the host
 * all the time, and at each change Chromium cancels all requests and connections (ERR_NETWORK_CHANGED). Chromium learns
 * of changes through the multicast groups of a netlink socket; this binds such sockets to no group.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* struct sockaddr_nl: the headers of the kernel are not on every machine. */
struct netlink_address {
  sa_family_t family;
  uint16_t padding;
  uint32_t id;
  uint32_t groups;
};

int bind(int fd, const struct sockaddr *address, socklen_t length) {
  if (length == sizeof(struct netlink_address) && address->sa_family == AF_NETLINK) {
    struct netlink_address without_groups = *(const struct netlink_address *)address;
    without_groups.groups = 0;
    return (int)syscall(SYS_bind, fd, &without_groups, length);
  }
  return (int)syscall(SYS_bind, fd, address, length);
}
