import type { EntryGroup } from './entry.ts'

export const backupErrors: EntryGroup = {
  area: 'cli',
  title: 'Backup and restore',
  intro: `Reasons why \`atoll backup\` and \`atoll restore\` end with exit code 1. A failed backup leaves no directory, and a failed restore an empty data directory.`,
  entries: {
    backup_damaged: [
      'A file of the backup is missing, or its checksum is wrong.',
      'Restore another backup.',
    ],
    backup_failed: [
      'The server could not capture its data; its log has the details.',
      'Read `atoll logs`.',
    ],
    backup_newer: ['A newer release of Atoll wrote the backup.', 'Restore it with that release.'],
    backup_no_data: ['The data directory does not exist.', 'Set `ATOLL_DATA_DIR`.'],
    backup_no_socket: [
      'A server uses the data directory but does not take backups: it is starting, or it is of an older release.',
      'Wait until the server is up, or stop it.',
    ],
    backup_server_ended: [
      'The server ended during the backup, so the files were no longer protected from changes.',
      'Try again.',
    ],
    backup_target: [
      'The backup cannot be written there: the target is not empty, is inside the data directory, lacks space, or its parent does not exist.',
      'Choose another target.',
    ],
    backup_under_way: ['Another backup of the same server is under way.', 'Wait for its end.'],
    backup_unstable: [
      'Certificates or keys changed during each attempt to capture them.',
      'Try again when no key rotation is under way.',
    ],
    no_backup: [
      'The directory has no manifest: it is not a backup, or the backup was interrupted.',
      'Restore another backup.',
    ],
    restore_architecture: [
      'The backup is of a machine with another architecture.',
      'Restore it on a machine with the same architecture.',
    ],
    restore_database: [
      'The backup has a store of SQLite, and `ATOLL_DATABASE_URL` is set.',
      'Unset `ATOLL_DATABASE_URL`.',
    ],
    restore_not_empty: [
      'The data directory is not empty.',
      'Set `ATOLL_DATA_DIR` to an empty or new directory.',
    ],
    restore_runsc: [
      'Another release of `runsc` wrote the memory in the backup.',
      'Set `ATOLL_RUNSC` to that release, or give the memory up with `--any-runsc`.',
    ],
  },
}
