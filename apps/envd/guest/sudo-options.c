/*
 * The command line of sudo. There are no passwords here, so password options are accepted and ignored.
 * Options that cannot be honored are rejected.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static const char usage_text[] =
    "usage: sudo -h | -K | -k | -V\n"
    "usage: sudo -l | -v\n"
    "usage: sudo [-AEHnS] [-p prompt] [-D directory] [-g group] [-u user] [VAR=value]\n"
    "            [-i | -s] [command [arg ...]]\n";

static const struct option long_options[] = {
    {"askpass", no_argument, NULL, 'A'},         {"background", no_argument, NULL, 'b'},
    {"chdir", required_argument, NULL, 'D'},     {"group", required_argument, NULL, 'g'},
    {"help", no_argument, NULL, 'h'},            {"list", no_argument, NULL, 'l'},
    {"login", no_argument, NULL, 'i'},           {"non-interactive", no_argument, NULL, 'n'},
    {"preserve-env", optional_argument, NULL, 'E'}, {"prompt", required_argument, NULL, 'p'},
    {"remove-timestamp", no_argument, NULL, 'K'}, {"reset-timestamp", no_argument, NULL, 'k'},
    {"set-home", no_argument, NULL, 'H'},        {"shell", no_argument, NULL, 's'},
    {"stdin", no_argument, NULL, 'S'},           {"user", required_argument, NULL, 'u'},
    {"validate", no_argument, NULL, 'v'},        {"version", no_argument, NULL, 'V'},
    {0}};

struct keep {
  int all;
  int home;
  char *names;
};

/* Whether the name of the variable (up to its '=') is in a comma-separated list. */
static int is_listed(const char *variable, const char *list) {
  size_t size = strcspn(variable, "=");
  for (const char *item = list; item && *item; item += strspn(item, ",")) {
    size_t item_size = strcspn(item, ",");
    if (item_size == size && strncmp(item, variable, size) == 0) return 1;
    item += item_size;
  }
  return 0;
}

/* Even with -E, the name variables and PATH are those of the target. */
static int is_kept(const char *variable, const struct options *options, const struct keep *keep) {
  if (is_listed(variable, "USER,LOGNAME,PATH") || strncmp(variable, "LD_", 3) == 0) return 0;
  if (is_listed(variable, "TERM,COLORTERM,LANG,LANGUAGE,LS_COLORS,DISPLAY,XAUTHORITY,TZ") ||
      strncmp(variable, "LC_", 3) == 0)
    return 1;
  if (options->mode == MODE_SHELL && is_listed(variable, "SHELL")) return 1;
  if (options->mode == MODE_LOGIN || (keep->home && is_listed(variable, "HOME"))) return 0;
  return keep->all || is_listed(variable, keep->names);
}

static int add_variable(struct options *options, const char *variable) {
  if (options->var_count == LENGTH(options->vars)) return -1;
  options->vars[options->var_count++] = variable;
  return 0;
}

/* Variables from the command line come first; each replaces one of the same name. */
static int collect_variables(struct options *options, const struct keep *keep) {
  int given = options->var_count;
  for (char **variable = environ; *variable; variable++) {
    int replaced = !strchr(*variable, '=');
    size_t size = strcspn(*variable, "=") + 1;
    for (int i = 0; i < given && !replaced; i++)
      replaced = strncmp(options->vars[i], *variable, size) == 0;
    if (!replaced && is_kept(*variable, options, keep) && add_variable(options, *variable) < 0)
      return -1;
  }
  return 0;
}

/* The name ends at the first '=' and contains no slash. */
static int is_assignment(const char *argument) {
  size_t size = strcspn(argument, "=/");
  return size > 0 && argument[size] == '=';
}

static int usage(void) {
  fputs(usage_text, stderr);
  return 1;
}

/* Sets `done` if nothing is left to do. Returns the exit status for that or for an error. */
static int take_option(int option, struct options *options, struct keep *keep) {
  switch (option) {
    case 'u': options->user = optarg; return 0;
    case 'g': options->group = optarg; return 0;
    case 'D': options->directory = optarg; return 0;
    case 'i': options->mode = MODE_LOGIN; return 0;
    case 's': options->mode = MODE_SHELL; return 0;
    case 'l': options->list = 1; options->mode = MODE_VALIDATE; return 0;
    case 'v': options->mode = MODE_VALIDATE; return 0;
    case 'H': keep->home = 1; return 0;
    case 'E':
      if (optarg) keep->names = optarg;
      else keep->all = 1;
      return 0;
    case 'A': case 'n': case 'S': case 'p': case 'k': return 0;
    case 'K': options->done = 1; return 0;
    case 'V': options->done = 1; puts("Sudo version 1.9 (Atoll root service)"); return 0;
    case 'h': options->done = 1; fputs(usage_text, stdout); return 0;
    case 'b': fputs("sudo: option -b is not supported\n", stderr); return 1;
    default: return usage();
  }
}

/* Returns 0 with `args` and `vars` set, or the exit status after printing a message. */
int parse_options(int argc, char **argv, struct options *options) {
  struct keep keep = {0};
  int forget = 0, status = 0;
  argv[0] = "sudo";
  for (;;) {
    int option = getopt_long(argc, argv, "+ABD:EHKSVbg:hiklnp:su:v", long_options, NULL);
    if (option == 'B') continue;
    if (option != -1) {
      forget |= option == 'k';
      status = take_option(option, options, &keep);
      if (status || options->done) return status;
    } else if (optind < argc && strcmp(argv[optind - 1], "--") != 0 && is_assignment(argv[optind])) {
      if (add_variable(options, argv[optind++]) < 0) return usage();
    } else {
      break;
    }
  }
  options->args = argv + optind;
  options->arg_count = argc - optind;
  if (options->mode == MODE_RUN && options->arg_count == 0) {
    options->done = forget;
    return forget ? 0 : usage();
  }
  if (collect_variables(options, &keep) < 0) {
    fputs("sudo: too many variables\n", stderr);
    return 1;
  }
  return 0;
}
