/*
 * guest gvisor-network NAMESPACE LINK SOCKET CALL, used on the host: gives a gVisor sandbox that was created
 * ahead its network, as `runsc restore` would do first.
 *
 * LINK in the network NAMESPACE loses its address, since the sandbox's own network stack will have it. CALL
 * is sent to the control SOCKET of the sandbox together with a packet socket on LINK. Where CALL has the
 * hardware address 00:00:00:00:00:00, it gets that of LINK.
 *
 * Threats: the sandbox has run nothing yet. Its answer is limited in size and time all the same.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { BUFFER_BYTES = 4 * 1024 * 1024, ANSWER_BYTES = 4096, ANSWER_SECONDS = 60, MAC_CHARS = 8 };
enum { WITH_OFFLOAD_HEADER = 15 }; /* PACKET_VNET_HDR of linux/if_packet.h, which musl lacks */

static const char mac_field[] = "\"LinkAddress\":\"";
static const char empty_mac[] = "AAAAAAAA";

static int fail(const char *what) {
  fprintf(stderr, "gvisor-network: %s: %s\n", what, strerror(errno));
  return 1;
}

/* Six bytes are eight characters, without padding. */
static void encode_mac(const unsigned char mac[ETH_ALEN], char *text) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (int i = 0; i < ETH_ALEN; i += 3, text += 4) {
    uint32_t three = (uint32_t)mac[i] << 16 | (uint32_t)mac[i + 1] << 8 | mac[i + 2];
    for (int j = 0; j < 4; j++) text[j] = digits[three >> (18 - 6 * j) & 63];
  }
}

static int fill_mac(char *call, const unsigned char mac[ETH_ALEN]) {
  char *found = strstr(call, mac_field);
  if (!found || strncmp(found + strlen(mac_field), empty_mac, MAC_CHARS) != 0) return -1;
  encode_mac(mac, found + strlen(mac_field));
  return 0;
}

static int open_packets(int index) {
  static const int on = 1, bytes = BUFFER_BYTES;
  struct sockaddr_ll where = {
      .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = index};
  /* Protocol 0: no packet of another link may arrive before the socket is bound. */
  int packets = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (packets < 0 || bind(packets, (struct sockaddr *)&where, sizeof where) < 0) return -1;
  if (setsockopt(packets, SOL_PACKET, WITH_OFFLOAD_HEADER, &on, sizeof on) < 0) return -1;
  /* Smaller buffers are only slower. */
  setsockopt(packets, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
  setsockopt(packets, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
  return packets;
}

static int connect_control(const char *path) {
  static const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
  struct sockaddr_un where = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof where.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(where.sun_path, path);
  int control = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (control < 0 || connect(control, (struct sockaddr *)&where, sizeof where) < 0) return -1;
  setsockopt(control, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return control;
}

static int send_call(int control, char *call, int packets) {
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
  } rights = {0};
  struct iovec text = {call, strlen(call)};
  struct msghdr message = {.msg_iov = &text,
                           .msg_iovlen = 1,
                           .msg_control = &rights,
                           .msg_controllen = sizeof rights.bytes};
  rights.head.cmsg_len = CMSG_LEN(sizeof(int));
  rights.head.cmsg_level = SOL_SOCKET;
  rights.head.cmsg_type = SCM_RIGHTS;
  memcpy(CMSG_DATA(&rights.head), &packets, sizeof packets);
  if (sendmsg(control, &message, MSG_NOSIGNAL) != (ssize_t)text.iov_len) return -1;
  return shutdown(control, SHUT_WR);
}

static int read_answer(int control) {
  char answer[ANSWER_BYTES];
  size_t length = 0;
  for (ssize_t count; length < sizeof answer - 1; length += (size_t)count) {
    count = read(control, answer + length, sizeof answer - 1 - length);
    if (count < 0) return fail("answer");
    if (count == 0) break;
  }
  answer[length] = '\0';
  if (strstr(answer, "\"success\":true")) return 0;
  fprintf(stderr, "gvisor-network: %.600s\n", answer);
  return 1;
}

int gvisor_network_main(int argc, char **argv) {
  if (argc != 5 || strlen(argv[2]) >= IFNAMSIZ) {
    fputs("gvisor-network: no namespace, link, socket or call\n", stderr);
    return 2;
  }
  int namespace = open(argv[1], O_RDONLY | O_CLOEXEC);
  if (namespace < 0) return fail(argv[1]);
  int control = connect_control(argv[3]);
  if (control < 0) return fail(argv[3]);
  if (setns(namespace, CLONE_NEWNET) < 0) return fail("setns");

  struct ifreq link = {0};
  strcpy(link.ifr_name, argv[2]);
  int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (any < 0 || ioctl(any, SIOCGIFHWADDR, &link) < 0) return fail(argv[2]);
  if (fill_mac(argv[4], (unsigned char *)link.ifr_hwaddr.sa_data) < 0) {
    fputs("gvisor-network: the call has no place for a hardware address\n", stderr);
    return 2;
  }
  if (ioctl(any, SIOCGIFINDEX, &link) < 0) return fail(argv[2]);
  int packets = open_packets(link.ifr_ifindex);
  if (packets < 0) return fail("packet socket");
  memset(&link.ifr_addr, 0, sizeof link.ifr_addr);
  link.ifr_addr.sa_family = AF_INET;
  if (ioctl(any, SIOCSIFADDR, &link) < 0) return fail("address");
  if (send_call(control, argv[4], packets) < 0) return fail(argv[3]);
  return read_answer(control);
}
