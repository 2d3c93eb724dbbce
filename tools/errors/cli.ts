import type { EntryGroup } from './entry.ts'

export const cliErrors: EntryGroup = {
  area: 'cli',
  title: 'Command line',
  intro: `Failures of \`atoll\` itself: message and hint on stderr, exit code 1. Errors of the platform API have their own message.
\`process_…\` stands for a Connect code of envd while a command runs in a sandbox.`,
  entries: {
    broken_exchange: [
      'The connection to the server failed during the request.',
      'Check `atoll status`, then run the command again.',
    ],
    install_failed: [
      'The template was not installed; the message has the reason, or the server was restarted.',
      'Run the command again; the server log has the cause.',
    ],
    no_answer: [
      'The server did not answer in time.',
      'Check `atoll status`, or raise the request timeout.',
    ],
    no_key: [
      'There is no API key: `ATOLL_API_KEY` is not set, and the credentials file is missing, invalid or closed to this user.',
      'Set `ATOLL_API_KEY`, or run the command as root on the machine of the server.',
    ],
    no_server: [
      'No server listens at the address.',
      'Start the server with `npm start`, or set `ATOLL_API_URL`.',
    ],
    not_a_terminal: [
      'A shell needs a terminal on stdin and stdout.',
      'Use `atoll sandbox exec` for a single command.',
    ],
    process_conflict: [
      'The state of the file or process does not allow the request.',
      'Check the message.',
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
    server_not_found: [
      'A server uses the data directory, but its PID file does not name the process.',
      'Stop the server by hand, then run `atoll down` again.',
    ],
    server_still_there: [
      'The server did not exit, not even after SIGKILL.',
      'Look for a process that hangs in the kernel; restart the machine if nothing else helps.',
    ],
  },
}
