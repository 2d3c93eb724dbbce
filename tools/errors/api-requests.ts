import type { EntryGroup } from './entry.ts'

export const apiRequestErrors: EntryGroup = {
  area: 'api',
  title: 'Platform API: credentials, teams and requests',
  entries: {
    access_token_not_found: [
      'The user has no access token with this ID.',
      'Use the ID that `POST /access-tokens` returned.',
    ],
    admin_token_invalid: [
      'The header `X-Admin-Token` is missing or wrong, or the server has no admin token.',
      'Send the value of `ATOLL_ADMIN_TOKEN` of the server.',
    ],
    api_key_not_found: [
      'The team has no API key with this ID.',
      'Check the ID with `GET /api-keys`.',
    ],
    cluster_not_found: ['There is no cluster with this ID.', 'Leave `clusterID` out.'],
    credentials_invalid: [
      'The API key or access token is malformed, unknown or deleted.',
      'Send a key that exists; the message shows its form.',
    ],
    credentials_missing: [
      'The request has no credentials, or an admin request names no team.',
      'Send the header that the message names, such as `X-API-Key`.',
    ],
    encrypted_value_damaged: [
      'A secret in the store is damaged, or belongs to another record.',
      'Set the secret again with `POST /secrets/{name}`, or restore the store.',
    ],
    encryption_being_rotated: [
      'Another request is replacing the encryption key.',
      'Wait until it has finished.',
    ],
    encryption_key_file: [
      'The key file of the server cannot be written, so the key was not replaced.',
      'Make the file writable for the server, or [add the key by hand](operate.md#encryption).',
    ],
    encryption_key_missing: [
      'A secret is encrypted with a key that the server does not have.',
      'Restore the key in the key file and restart the server, or set the secret again.',
    ],
    encryption_several_servers: [
      'Other servers use the database, and would not know a new key.',
      'Stop them, rotate, copy the key file to them, and start them again.',
    ],
    internal: [
      'The install of a template failed with an unexpected error.',
      'Report the time to the operator; the server log has the cause.',
    ],
    internal_server_error: [
      'The server met an unexpected error.',
      'Report the request ID in the message to the operator; the server log has the cause under it.',
    ],
    invalid_next_token: [
      'The page token is malformed, or was made for another order.',
      'Take the token from the header `X-Next-Token` of the page before, with the same `order`.',
    ],
    invalid_range: [
      'The time range of metrics starts after its end, or lies after the year 2299.',
      'Send `start` before `end`, as Unix seconds.',
    ],
    invalid_request: [
      'A field of the path, query or body is missing or has the wrong form; the message names up to three.',
      'Correct these fields; the [API reference](api.md) and `/docs` of the server show the schemas.',
    ],
    node_answers: [
      'A node that may still work was to be removed for good.',
      'Stop its agent and machine, and wait as long as the message says.',
    ],
    node_forgotten: [
      'A node that an operator has removed for good tries to join again.',
      'Join with an empty data directory.',
    ],
    node_not_found: ['There is no node with this ID.', 'Check the ID with `GET /nodes`.'],
    node_status: [
      'The requested status is one that a node can have but an operator cannot set, or `moveSandboxes` is sent with another status than `draining`.',
      'Send `ready`, `draining` or `standby`; `moveSandboxes` only with `draining`.',
    ],
    join_token: [
      'The join token is wrong, used, expired or for another role.',
      'Make a new one with `atoll node token` or `atoll edge token`.',
    ],
    member_exists: [
      'A member of the fleet has this ID, or was removed less than a day ago.',
      'Join with an empty data directory, or wait a day after the removal.',
    ],
    member_not_found: [
      'The team or the fleet has no such member.',
      'Check the ID of the user; `GET /fleet/members` lists the members of a fleet.',
    ],
    member_is_edge: [
      'Only nodes can be removed for good, and the ID is that of an edge.',
      'Use `atoll node remove` without `--forget`.',
    ],
    no_fleet: ['The server runs alone, with `atoll up`.', 'Start `atoll api` for a fleet.'],
    not_a_member: [
      'An edge or a node that was removed from the fleet called the api.',
      'Join again, with a new data directory.',
    ],
    node_superseded: [
      'A node runs on a copy or an old backup of its data, so it is not used. Only the server log has this reason.',
      'Stop this node, and start the one with the newest data.',
    ],
    not_supported_yet: [
      'The request has fields that Atoll does not support yet.',
      'Leave out the fields that the message names.',
    ],
    not_your_team: [
      'The request asks for the metrics of another team.',
      'Request the metrics of your own team.',
    ],
    rate_limited: [
      'The team sends more requests of this kind than its rate limit allows.',
      'Wait for the seconds in `Retry-After`.',
    ],
    secret_not_found: ['The team has no such secret.', 'Check the name with `GET /secrets`.'],
    secret_taken: [
      'The team already has a secret of this name.',
      'Choose another name, or update that secret.',
    ],
    server_stopping: [
      'The server is shutting down and starts no build or install.',
      'Retry after a moment.',
    ],
    store_unavailable: [
      'The database does not answer.',
      'Retry with backoff; operators check PostgreSQL.',
    ],
    team_banned: [
      'An operator banned the team, which may do nothing; the message has the reason.',
      'Ask the operator.',
    ],
    team_blocked: [
      'An operator blocked the team, which may still list, read and delete; the message has the reason.',
      'Ask the operator.',
    ],
    team_forbidden: [
      'The user is not a member of the team, or the team in `X-Team-ID` does not exist.',
      'Choose a team from `GET /teams`.',
    ],
    team_mismatch: [
      '`teamID` is not the team of the API key.',
      'Omit `teamID`, or use a key of that team.',
    ],
    team_not_found: ['There is no team with this ID.', 'Check the ID with `GET /admin/teams`.'],
    too_many_secrets: [
      'The team has as many secrets as a team may have.',
      'Delete secrets that are not needed.',
    ],
    unhealthy: [
      'The health check found that the database does not answer.',
      'Retry with backoff; operators check the database.',
    ],
    unstorable_text: [
      'A text contains the character U+0000.',
      'Remove the character from names, IDs and metadata.',
    ],
  },
}
