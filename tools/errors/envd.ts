import type { EntryGroup } from './entry.ts'

export const envdErrors: EntryGroup = {
  area: 'envd',
  title: 'Sandbox service (envd)',
  intro: `Processes, files and watches inside a sandbox. RPCs (\`/process.Process/…\`, \`/filesystem.Filesystem/…\`) answer with the
Connect code, as \`{"code": "not_found", "message": "…"}\`; in a stream the error is the last message, after status 200. Other
paths, such as \`/files\`, answer with the HTTP status and the same body with a number as \`code\`. Requests without or with a wrong
access token get 401, and 503 before the sandbox is ready. \`bad_query\` answers plain text.`,
  entries: {
    bad_account: [
      'The user has an invalid UID or GID in `/etc/passwd` of the sandbox.',
      'Correct that line, or use another user.',
    ],
    bad_body: ['The body is too large, or is not JSON.', 'Send a JSON body within the limit.'],
    bad_ca_bundle: [
      'The certificates that the node sends cannot be parsed; clients cannot reach this path.',
      'Report this to the operator.',
    ],
    bad_compose: [
      'The request to join files misses a field, or names too many files.',
      'Correct the field that the message names.',
    ],
    bad_cwd: [
      'The working directory does not exist, is not a directory, or is closed to the user.',
      'Create the directory, or choose another `cwd` or user.',
    ],
    bad_encoding: [
      'The encoding of the upload is unknown, or its gzip data is corrupt.',
      'Send gzip or plain data with the right `Content-Encoding`.',
    ],
    bad_init: [
      'The settings that the node sends are malformed; clients cannot reach this path.',
      'Report this to the operator.',
    ],
    bad_metadata: [
      'A metadata header has no key, is too long, or is not printable ASCII.',
      'Shorten or encode the metadata.',
    ],
    bad_multipart: [
      'The multipart body of an upload is malformed, or its boundary is missing.',
      'Send a valid `multipart/form-data` body.',
    ],
    bad_path: [
      'The path is a directory, not a regular file, too long, contains a NUL byte, or has the `~` of another user.',
      'Use another path, preferably absolute.',
    ],
    bad_process: [
      'The command is empty, the name of a variable is invalid, a text contains NUL, or the arguments are too long for the kernel.',
      'Correct the command, or pass long data by a file.',
    ],
    bad_query: [
      'A query parameter of `/files` is malformed or given twice.',
      'Percent-encode the parameter, and send each parameter once.',
    ],
    bad_signature: [
      'The signed URL has no signature, a wrong one, or has expired.',
      'Sign the URL again for the same path, user and operation.',
    ],
    bad_trust: [
      'The node sent certificates in the wrong form; clients cannot reach this path.',
      'Report this to the operator.',
    ],
    bad_upload: [
      'The upload names no path, names one twice, or has an unsupported content type.',
      'Set the query parameter `path`, or give each part of a form its own file name.',
    ],
    disk_full: [
      'The disk of the sandbox is full, so the file was not written.',
      'Delete files in the sandbox, or use a template with a larger disk.',
    ],
    file_failed: [
      'The system refused access to the file; the message has its error.',
      'Check the permissions and the file system at that path.',
    ],
    file_not_found: ['The file or directory does not exist.', 'Check the path and the user.'],
    file_shrank: [
      'The file became shorter during the download, which breaks off.',
      'Download the file when no program writes it.',
    ],
    internal: [
      'envd met an unexpected error, which is in the log of the sandbox.',
      'Read the log of the sandbox, and report the error to the operator.',
    ],
    link_loop: ['The path contains a loop of symlinks.', 'Remove one of the symlinks.'],
    metadata_failed: [
      'The system refused to store the metadata of the file.',
      'Store the file on the disk of the sandbox, or without metadata.',
    ],
    no_libc: [
      'envd could not load its native code, which watches need.',
      'Create a new sandbox, and report this to the operator.',
    ],
    no_terminals: [
      'envd could not load its terminal support.',
      'Start the process without `pty`, and report this to the operator.',
    ],
    not_a_file: ['The path is a directory or a special file.', 'Use the path of a regular file.'],
    not_a_folder: [
      'The path, or a parent of it, exists and is not a directory.',
      'Use another path, or remove the file that is in the way.',
    ],
    not_ready: ['The sandbox has not received its settings yet.', 'Retry after a moment.'],
    not_watchable: [
      'The path is not a directory, or is on a network mount.',
      'Watch a directory, or set `allowNetworkMounts`.',
    ],
    process_not_found: [
      'No running process has this PID or tag.',
      'List the processes; this one may have exited.',
    ],
    signal_failed: [
      'The kernel refused to deliver the signal.',
      'Check that the process still runs.',
    ],
    spawn_failed: [
      'The kernel refused to start the process or to open a terminal.',
      'End other processes or terminals, and check the process limit of the sandbox.',
    ],
    stdin_closed: ['The process has closed its input, or has exited.', 'Stop sending input.'],
    stdin_full: [
      'The process does not read its input, and too much is pending.',
      'Retry when the process reads again.',
    ],
    too_many_entries: [
      'The directory has more entries than one answer may hold.',
      'List a subdirectory, or use a smaller depth.',
    ],
    too_many_watchers: [
      'The sandbox has as many watchers as it may have.',
      'Remove watchers that are no longer needed.',
    ],
    too_many_watches: [
      'The watched tree has more directories than envd can watch.',
      'Watch a smaller tree, or without recursion.',
    ],
    too_much_metadata: [
      'Too many files, or too many bytes, of metadata are stored.',
      'Delete files that have metadata.',
    ],
    trust_failed: [
      'envd could not write the certificate of the egress proxy; clients cannot reach this path.',
      'Free disk space in the sandbox, and read its log.',
    ],
    unknown_user: [
      'The user does not exist in the sandbox.',
      'Use a user of the sandbox, such as `user` or `root`.',
    ],
    watch_failed: [
      'The kernel refused to watch the directory; the message has the error.',
      'Remove other watches, then retry.',
    ],
    watch_overflow: [
      'More changes happened than were read in time, so the watch was closed.',
      'Start a new watch and list the directory again.',
    ],
    watcher_not_found: ['There is no watcher with this ID.', 'Create a new watcher.'],
    wrong_kind_of_process: [
      'The request does not fit the process, such as terminal input for a process without terminal.',
      'Use the request for the other kind, or start the process with `pty`.',
    ],
  },
}
