import type { EntryGroup } from './entry.ts'

export const cliErrors: EntryGroup = {
  area: 'cli',
  title: 'Command line',
  intro: `Failures of \`atoll\` itself: message and hint on stderr, exit code 1. Errors of the platform API have their own message.
\`process_…\` stands for a Connect code of envd while a command runs in a sandbox.`,
  entries: {
    archive_broken: [
      'The archive that the sandbox sent for a copy is not a tar archive, or incomplete.',
      'Check `tar` in the sandbox.',
    ],
    broken_exchange: [
      'The connection to the server failed during the request.',
      'Check `atoll status`, then run the command again.',
    ],
    build_failed: [
      'A step of the build failed; the message names the step.',
      'Read the log above the message, or `atoll template logs`, and correct the step.',
    ],
    build_not_started: [
      'The build was requested, but its files were not uploaded or it was not started.',
      'Run `atoll template build` again.',
    ],
    configuration_refused: [
      'Settings of the environment are invalid, or cannot be written into the settings file of the service.',
      'Correct or unset the variables that the message names.',
    ],
    copy_incomplete: [
      '`tar` in the sandbox could not read everything; the rest was copied.',
      'Copy as another user with `--user root`, or look at the files that the message names.',
    ],
    copy_refused: [
      'The user of the sandbox may not write there, or its disk is full, or it has no `tar`.',
      'Choose another target, or `--user root`.',
    ],
    copy_source_absent: ['The sandbox has no such file.', 'Check the path.'],
    copy_source_special: [
      'The source is a device, a pipe or a socket.',
      'Read it with `atoll sandbox exec`.',
    ],
    copy_too_large: [
      'The sandbox sent more than `--max-size`, or more than a million entries.',
      'Raise `--max-size` if you expect so much.',
    ],
    file_changed: [
      'A file changed while it was uploaded.',
      'Run the command again when nothing writes to the file.',
    ],
    install_failed: [
      'The template was not installed; the message has the reason, or the server was restarted.',
      'Run the command again; the server log has the cause.',
    ],
    node_status: [
      'The status of a node was changed while `atoll node drain --move` waited for its sandboxes.',
      'Check the node with `atoll node show`, and drain it again if it is to be empty.',
    ],
    sandboxes_stay: [
      'Sandboxes could not be moved off a node; the message names each of them and its reason. They keep running.',
      'Remove the reason, such as no other node with room, and repeat the command: it tries all moves at once. Without it, a move is tried again after a minute, or ten times the break that the last attempt cost.',
    ],
    no_admin_token: [
      'The command manages nodes, and `ATOLL_ADMIN_TOKEN` is not set.',
      'Set `ATOLL_ADMIN_TOKEN` to the value that the server has.',
    ],
    no_answer: [
      'The server did not answer in time.',
      'Check `atoll status`, or raise the request timeout.',
    ],
    no_build: [
      'The template has no build, or not the one of this ID.',
      'List the builds with `atoll template show`.',
    ],
    no_key: [
      'There is no API key: `ATOLL_API_KEY` is not set, and the credentials file is missing, invalid or not readable by this user.',
      'Set `ATOLL_API_KEY`, or run the command as root on the machine of the server.',
    ],
    no_server: [
      'No server listens at the address.',
      'Start the server with `npm start`, or set `ATOLL_API_URL`.',
    ],
    no_server_log: [
      'There is no server log in `ATOLL_DATA_DIR`.',
      'Start the server, or set `ATOLL_DATA_DIR`. With `ATOLL_LOG=stdout` the log is where its supervisor puts it.',
    ],
    no_systemd: [
      'The machine does not run systemd, or has no `systemctl`.',
      'Start the server with `atoll up` under your own supervisor, or pass `--root`.',
    ],
    not_a_terminal: [
      'A shell needs a terminal on stdin and stdout.',
      'Use `atoll sandbox exec` for a single command.',
    ],
    output_too_long: [
      'A helper program in the sandbox printed more than 4 MiB.',
      'Check the program that the message names.',
    ],
    path_unsafe: [
      'The sandbox sent a path or a link that leaves the target folder. The copy was stopped.',
      'Treat the sandbox as hostile.',
    ],
    process_conflict: [
      'The state of the file or process does not allow the request.',
      'Read the message: it names the file or process and its state.',
    ],
    process_exhausted: [
      'A limit of the sandbox is reached.',
      'End processes, or free space in the sandbox.',
    ],
    process_forbidden: ['The sandbox refused the request.', 'Check the user and the access token.'],
    process_internal: [
      'envd failed, or the answer is not one of envd.',
      'Read the log of the sandbox.',
    ],
    process_invalid: ['envd rejected the command.', 'Correct the argument that the message names.'],
    process_not_found: ['The process or file does not exist.', 'Check the path or the PID.'],
    process_timeout: [
      'The command did not end within its timeout, and was killed.',
      'Raise `--timeout`.',
    ],
    process_unauthenticated: [
      'The user does not exist in the sandbox, or the access token is wrong.',
      'Set `--user` to a user of the sandbox.',
    ],
    process_unavailable: [
      'The sandbox cannot be reached.',
      'Check `atoll sandbox list` and `atoll status`.',
    ],
    reply_not_understood: [
      'The server is of another release than the command line.',
      'Use the command line of the same release.',
    ],
    sandbox_lost: [
      'The connection to the sandbox was lost while a command ran.',
      'Check whether the sandbox still runs: a kill, a timeout or a stop of the server ends commands.',
    ],
    server_log_unreadable: ['This user may not read the server log.', 'Run the command as root.'],
    server_not_found: [
      'A server uses the data directory, but its PID file does not name the process.',
      'Stop the server by hand, then run `atoll down` again.',
    ],
    server_still_there: [
      'The server did not exit, not even after SIGKILL.',
      'Look for a process that hangs in the kernel; restart the machine if nothing else helps.',
    ],
    service_failed: [
      '`systemctl` could not enable, start or stop the service; its message is at the end.',
      'Look at `systemctl status atoll` and `atoll logs`.',
    ],
    service_path_unusable: [
      'The path of the clone has characters that a systemd unit cannot hold.',
      'Move the clone to a path of letters, digits and `/._+-`.',
    ],
    target_in_the_way: [
      'Something local that is not a plain file or folder has the name of a copied file.',
      'Move it, or choose another target.',
    ],
  },
}
