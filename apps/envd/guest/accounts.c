/*
 * Looks users and groups up in /etc/passwd and /etc/group only. The sandbox controls these files: at
 * most one megabyte of a regular file is read, and malformed lines are skipped.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 1024 * 1024, PASSWD_FIELDS = 7, GROUP_FIELDS = 4 };

/* Returns the text, which the caller frees, or NULL. Drops a last line that was truncated by the size limit. */
static char *read_file(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return NULL;
  struct stat info;
  char *text = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? malloc(MAX_FILE + 1) : NULL;
  size_t size = 0;
  if (text) {
    for (ssize_t got; size < MAX_FILE && (got = read(fd, text + size, MAX_FILE - size)) > 0;)
      size += (size_t)got;
    while (size == MAX_FILE && size > 0 && text[size - 1] != '\n') text[--size] = '\0';
    text[size] = '\0';
  }
  close(fd);
  return text;
}

/* Splits the next line with exactly `count` fields off the text at *rest. */
static int next_entry(char **rest, char **fields, int count) {
  for (char *line; *rest && (line = strsep(rest, "\n"));) {
    int found = 0;
    for (char *field; (field = strsep(&line, ":")); found++)
      if (found < count) fields[found] = field;
    if (found == count) return 1;
  }
  return 0;
}

static int copy_field(char *to, size_t size, const char *from) {
  size_t length = strlen(from);
  if (length >= size) return -1;
  memcpy(to, from, length + 1);
  return 0;
}

static int to_account(char **fields, struct account *account) {
  const char *home = *fields[5] ? fields[5] : "/", *shell = *fields[6] ? fields[6] : "/bin/sh";
  if (*fields[0] == '\0' || copy_field(account->name, sizeof account->name, fields[0]) < 0 ||
      copy_field(account->home, sizeof account->home, home) < 0 ||
      copy_field(account->shell, sizeof account->shell, shell) < 0)
    return -1;
  return parse_id(fields[2], &account->uid) | parse_id(fields[3], &account->gid);
}

static int find_account(const char *name, uid_t uid, struct account *account) {
  char *text = read_file("/etc/passwd"), *rest = text, *fields[PASSWD_FIELDS];
  int result = -1;
  while (result < 0 && rest && next_entry(&rest, fields, PASSWD_FIELDS))
    if (to_account(fields, account) == 0 &&
        (name ? strcmp(account->name, name) == 0 : account->uid == uid))
      result = 0;
  free(text);
  return result;
}

int account_by_uid(uid_t uid, struct account *account) { return find_account(NULL, uid, account); }

int account_by_name(const char *name, struct account *account) {
  if (*name != '#') return find_account(name, 0, account);
  uid_t uid;
  return parse_id(name + 1, &uid) < 0 ? -1 : account_by_uid(uid, account);
}

int group_by_name(const char *name, gid_t *gid) {
  if (*name == '#') return parse_id(name + 1, gid);
  char *text = read_file("/etc/group"), *rest = text, *fields[GROUP_FIELDS];
  int result = -1;
  while (result < 0 && rest && next_entry(&rest, fields, GROUP_FIELDS))
    if (strcmp(fields[0], name) == 0) result = parse_id(fields[2], gid);
  free(text);
  return result;
}

static int is_member(char *members, const char *name) {
  for (char *member; (member = strsep(&members, ","));)
    if (strcmp(member, name) == 0) return 1;
  return 0;
}

/* Sets gid and groups: the primary group, then every group that lists the account. */
void account_groups(const struct account *account, struct identity *who) {
  char *text = read_file("/etc/group"), *rest = text, *fields[GROUP_FIELDS];
  who->gid = account->gid;
  who->groups[0] = account->gid;
  who->group_count = 1;
  while (rest && who->group_count < MAX_GROUPS && next_entry(&rest, fields, GROUP_FIELDS)) {
    gid_t gid;
    if (parse_id(fields[2], &gid) == 0 && gid != account->gid && is_member(fields[3], account->name))
      who->groups[who->group_count++] = gid;
  }
  free(text);
}

/* Allows root and members of the groups sudo and wheel. Fills in the caller's account as far as known. */
int may_use_sudo(uid_t uid, struct account *caller) {
  int known = account_by_uid(uid, caller) == 0;
  if (!known) *caller = (struct account){.uid = uid, .home = "/", .shell = "/bin/sh"};
  if (uid == 0 || !known) return uid == 0;
  char *text = read_file("/etc/group"), *rest = text, *fields[GROUP_FIELDS];
  int allowed = 0;
  while (!allowed && rest && next_entry(&rest, fields, GROUP_FIELDS)) {
    gid_t gid;
    int names_us = strcmp(fields[0], "sudo") == 0 || strcmp(fields[0], "wheel") == 0;
    if (names_us && parse_id(fields[2], &gid) == 0)
      allowed = gid == caller->gid || is_member(fields[3], caller->name);
  }
  free(text);
  return allowed;
}
