/* Declarations shared by the parts of the guest program. README.md describes the whole. */
#ifndef GUEST_H
#define GUEST_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LENGTH(array) (sizeof(array) / sizeof *(array))
#define SECURE_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#ifndef SOCKET_PATH
#define SOCKET_PATH "/run/atoll/sudo.sock"
#endif
#ifndef TOKEN_PATH
#define TOKEN_PATH "/run/atoll/init-token"
#endif

enum {
  MAX_GROUPS = 64,
  MAX_PATH = 4096,
  MAX_COMMANDS = 64,
  MAX_FIFOS = 256,
  MAX_STRINGS = 1024,
  MAX_REQUEST = 128 * 1024
};

/* main.c: one function per subcommand; the result is the exit status. */
int init_main(int argc, char **argv);
int spawner_main(int argc, char **argv);
int exec_main(int argc, char **argv);
int exec_command(int argc, char **argv);
int fifos_main(int argc, char **argv);
int sudo_main(int argc, char **argv);
int rootfs_main(int argc, char **argv);
int gvisor_start_main(int argc, char **argv);
int gvisor_network_main(int argc, char **argv);
int gvisor_root_main(int argc, char **argv);

/* proc.c: mounts /proc anew. */
void limit_proc_cache(void);

/* signals.c: signals are blocked and recorded, and arrive only inside wait_events. */
void watch_signals(const int *signals, size_t count, int keep_ignored);
int wait_events(struct pollfd *fds, nfds_t count, int timeout_ms);
int take_signal(int signal);
void reset_signals(void);
void unblock_signals(void);

/* launch.c: the last steps before a command runs. */
struct identity {
  uid_t uid;
  gid_t gid;
  gid_t groups[MAX_GROUPS];
  int group_count;
};
int parse_id(const char *text, uint32_t *id);
void fill_stdio(void);
int become(const struct identity *who);
int find_command(const char *name, const char *path, char found[MAX_PATH]);
void run_found(char *found, char **argv, char **env);

/* accounts.c: /etc/passwd and /etc/group; functions return 0, or -1 if there is no such entry. */
struct account {
  char name[64];
  uid_t uid;
  gid_t gid;
  char home[1024];
  char shell[1024];
};
int account_by_name(const char *name_or_id, struct account *account);
int account_by_uid(uid_t uid, struct account *account);
int group_by_name(const char *name_or_id, gid_t *gid);
void account_groups(const struct account *account, struct identity *who);
int may_use_sudo(uid_t uid, struct account *caller);

/* sudo-wire.c: the protocol between client and service. */
enum mode { MODE_RUN, MODE_SHELL, MODE_LOGIN, MODE_VALIDATE };
enum { FD_DIRECTORY = 3, FD_TERMINAL = 4, MAX_FDS = 5 };
struct header {
  uint32_t magic;
  uint32_t bytes;
  uint16_t args;
  uint16_t vars;
  uint16_t umask;
  uint8_t mode;
  uint8_t fds;
};
/* NUL-terminated strings follow the header in this order: user, group, directory, args, vars. */
enum { STRING_USER, STRING_GROUP, STRING_DIRECTORY, STRING_ARGS };
#define HEADER_MAGIC 0x41544f31u

enum reply_kind { REPLY_READY = 1, REPLY_ERROR, REPLY_EXIT, REPLY_KILLED, REPLY_STOPPED };
struct reply {
  uint8_t kind;
  uint8_t value;
  char text[254];
};
extern const int forwarded_signals[];
extern const size_t forwarded_count;

struct parcel {
  int known;
  uid_t uid;
  gid_t gid;
  int fds[MAX_FDS];
  int fd_count;
};
int send_bytes(int socket, const void *data, size_t size, const int *fds, int fd_count);
int receive_bytes(int socket, void *data, size_t size, struct parcel *parcel);
int receive_reply(int socket, struct reply *reply);
void send_reply(int socket, enum reply_kind kind, int value, const char *text);

/* root-service.c and root-command.c: the side that runs as root. */
struct request {
  struct header header;
  char *strings[MAX_STRINGS + 1];
  struct account caller;
  int fds[MAX_FDS];
};
int open_service(void);
void serve_connection(int socket);
pid_t start_command(const struct request *request, char error[254]);

/* sudo-options.c: the command line of sudo and its variables. */
struct options {
  const char *user;
  const char *group;
  const char *directory;
  enum mode mode;
  int list;
  int done;
  char **args;
  int arg_count;
  const char *vars[MAX_STRINGS];
  int var_count;
};
int parse_options(int argc, char **argv, struct options *options);

/* sudo-terminal.c: relays between the caller's terminal and the command's own. */
struct terminal {
  int master;
  int slave;
  int output;
  int raw;
  int foreground;
  char input[4096];
  size_t input_size;
  int hung_up;
  int ended;
};
int terminal_open(struct terminal *terminal);
void terminal_claim(struct terminal *terminal);
void terminal_release(struct terminal *terminal);
void terminal_resize(const struct terminal *terminal);
void terminal_poll(const struct terminal *terminal, struct pollfd fds[2]);
void terminal_relay(struct terminal *terminal, const struct pollfd fds[2]);
void terminal_drain(struct terminal *terminal);

#endif
