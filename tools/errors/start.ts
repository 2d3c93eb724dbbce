import type { EntryGroup } from './entry.ts'

export const startErrors: EntryGroup = {
  area: 'start',
  title: 'Start of the server',
  intro: `Reasons why \`atoll up\` ends with exit code 1 and the message on stderr. \`atoll doctor\` checks the machine.`,
  entries: {
    apt_sources: [
      'The apt sources of the machine name no Debian mirror for the packages that Atoll needs.',
      'Add a mirror to the apt sources, or install `runsc` by hand.',
    ],
    bad_subnet: [
      '`ATOLL_SUBNET` is not an IPv4 network of at least four addresses.',
      'Set a network such as `10.213.0.0/16`.',
    ],
    base_template: [
      '`mmdebstrap` could not build a template; its last output follows the message.',
      'Check the network and the Debian mirror, then start again.',
    ],
    cannot_listen: [
      'The address is in use, is not of this machine, or is closed to this user.',
      'End the other program, or choose another address with the setting in the message.',
    ],
    already_joined: [
      'The data directory belongs to a member of a fleet already.',
      'Start that member, or join with another `ATOLL_DATA_DIR`.',
    ],
    api_address: [
      'The address of the api is invalid.',
      'Give `host:port` of `ATOLL_FLEET_LISTEN` of an api.',
    ],
    api_unreachable: [
      'No api of the fleet answers at its internal address.',
      'Check the address, the firewall, and whether the api runs.',
    ],
    fleet_authority: [
      'The file of `ATOLL_FLEET_CA_FILE` is no certificate authority with its key.',
      'Put the certificate and its P-256 key into the file, as PEM; for edges and nodes the certificate.',
    ],
    fleet_identity: [
      'The certificate of this part is damaged, or belongs to another node.',
      'Remove the member with `atoll node remove`, and join again.',
    ],
    join_refused: [
      'The api did not let this part join; the message has its reason.',
      'Make a new token with `atoll node token` or `atoll edge token`.',
    ],
    join_token: ['The text is not a join token.', 'Copy the whole token.'],
    not_joined: [
      'This part has not joined a fleet.',
      'Run `atoll node join` or `atoll edge join` first.',
    ],
    token_review: [
      'The Kubernetes API server did not say whose token a pod sent, or too many pods join at once.',
      'The pod tries again by itself. Check that the service account of the api may create token reviews (`system:auth-delegator`).',
    ],
    too_many_signatures: [
      'Too many requests with unknown signatures reached the edges at once.',
      'Try again later.',
    ],
    wrong_fleet: [
      'The server at the address does not belong to the fleet of the token. The token was not sent.',
      'Check the address.',
    ],
    configuration_refused: [
      'Settings are invalid; the message lists all.',
      'Correct the settings; [this page](configuration.md) describes all.',
    ],
    damaged_local_ca: [
      'The file of the local CA in the data directory is damaged.',
      'Create a new one with `atoll tls local --replace`, and trust it on all clients.',
    ],
    data_dir_in_use: [
      'Another server uses the data directory.',
      'Stop that server with `atoll down`, or set another `ATOLL_DATA_DIR`.',
    ],
    data_dir_unusable: [
      'The data directory cannot be written.',
      'Run as root, free disk space, or set another `ATOLL_DATA_DIR`.',
    ],
    encryption_key_file: [
      'The file with the encryption keys cannot be read or written, is readable by other users, or holds something else.',
      'Correct what the message names; [the page](operate.md#encryption) shows the form of the file.',
    ],
    encryption_key_wrong: [
      'The store is encrypted with a key that is not in the key file. Nothing was changed.',
      'Restore the key file, or set `ATOLL_ENCRYPTION_KEY_FILE` to the one with this key.',
    ],
    host_packages: [
      'apt could not install the packages that Atoll needs; its last lines are in the message.',
      'Check the network and the apt sources, or install the packages by hand.',
    ],
    restore_incomplete: [
      'A restore into the data directory was interrupted.',
      'Empty the directory, then run `atoll restore` again.',
    ],
    runsc_refused: [
      'The program in `ATOLL_RUNSC` cannot be used; the message says why.',
      'Correct the path, the owner or the release of the program.',
    ],
    runtime_unusable: [
      'gVisor or runc does not run on this machine.',
      'Run `atoll doctor`; set `ATOLL_RUNTIME=runc` only for trusted code.',
    ],
    store_in_use: [
      'A live server with another node uses the same database.',
      'Give each server its own database.',
    ],
    store_mismatch: [
      'The database belongs to another installation than the data directory; nothing was changed.',
      'Bring back the database that belongs to the data directory.',
    ],
    store_unavailable: [
      'PostgreSQL cannot be used; the message has host, database and cause.',
      'Check `ATOLL_DATABASE_URL` and the database server.',
    ],
    subnet_taken: [
      'An interface of the machine has an address in the subnet of the sandboxes.',
      'Set `ATOLL_SUBNET` to a free private network.',
    ],
    too_few_descriptors: [
      'The process may open too few files for `ATOLL_MAX_CONNECTIONS`.',
      'Raise `ulimit -n` or `LimitNOFILE`, or lower the setting.',
    ],
    unusable_certificate: [
      'HTTPS cannot start with the certificate and key; the message says why.',
      'Correct `ATOLL_TLS_CERT_FILE` and `ATOLL_TLS_KEY_FILE`, or run `atoll tls local`.',
    ],
  },
}
