import type { Refusal } from '../../apps/edge/src/domain/refusal.ts'
import type { EntryGroup } from './entry.ts'

export const edgeErrors: EntryGroup = {
  area: 'edge',
  title: 'Sandbox traffic (edge)',
  intro: `Requests to a port of a sandbox, by host name or by header. Programs get JSON, with \`sandboxId\`, \`port\` or
\`connectionLimit\` where they apply; browsers get a page; some answers are plain text. The program in the sandbox may answer with the same
statuses: its answers have no such body.`,
  entries: {
    api_unreachable: [
      'Fleet only: the edge does not know the sandbox, and no api has answered for some seconds.',
      'Retry after a moment; operators check the apis and the database.',
    ],
    bad_request: [
      'The request names no sandbox, or contradicts itself.',
      'Use a host name `{port}-{sandboxID}.{domain}`, or the headers `Svc-Sandbox-Id` and `Svc-Sandbox-Port`.',
    ],
    edge_full: [
      'Too many requests to all sandboxes together are open.',
      'Retry after a moment; operators raise `ATOLL_MAX_CONNECTIONS`.',
    ],
    forbidden: [
      'The sandbox is private and the traffic token is missing or wrong, or this request may not resume the paused sandbox.',
      'Send the traffic access token of the sandbox in `E2B-Traffic-Access-Token`.',
    ],
    in_transition: [
      'The sandbox is being paused or resumed, and was not ready in time.',
      'Retry after a moment.',
    ],
    internal: [
      'The edge met an unexpected error.',
      'Retry, and report the time to the operator; the server log has the cause.',
    ],
    internal_path: [
      'The path belongs to the interface between node and envd.',
      'Use the paths that clients may use.',
    ],
    node_unreachable: [
      'The node that runs the sandbox does not answer.',
      'Retry with backoff; operators check `atoll status`.',
    ],
    port_closed: [
      'The sandbox runs, but no program answers on the port.',
      'Start the program, or check its port.',
    ],
    sandbox_limit: [
      'The request would resume the paused sandbox, but the team has reached its limit of running sandboxes.',
      'Kill or pause another sandbox.',
    ],
    sandbox_not_found: [
      'There is no such sandbox, or the sandbox has ended, or is paused and not resumed by traffic.',
      'Check the ID; resume a paused sandbox by the API.',
    ],
    sandbox_unsettled: [
      'The sandbox changed its state several times during the lookup; the answer is that of `node_unreachable`.',
      'Retry after a moment.',
    ],
    too_many_requests: [
      'The sandbox has as many open requests as one sandbox may have.',
      'Close requests, or ask the operator to raise `ATOLL_EDGE_MAX_REQUESTS_PER_SANDBOX`.',
    ],
    too_many_signatures: [
      'Too many signed URLs with unknown signatures arrive at once.',
      'Retry after a moment.',
    ],
    unknown_signature: [
      'No running sandbox has signed this URL, or the URL was changed.',
      'Sign the URL again, and check that the sandbox runs.',
    ],
    unsupported: [
      'The transfer coding of the request is not `chunked`.',
      'Send a plain or a chunked body.',
    ],
    wake_forbidden: [
      'The sandbox is paused, and the request has no token or the team is blocked; the answer is that of `forbidden`.',
      'Send the token in the header that the message names.',
    ],
  },
}

const sandboxId = 'id'
const message = ''

/** One refusal of each kind, from which the page takes the status. */
export const refusals: { readonly [Kind in Refusal['kind']]: Extract<Refusal, { kind: Kind }> } = {
  bad_request: { kind: 'bad_request', message },
  unsupported: { kind: 'unsupported', message },
  internal_path: { kind: 'internal_path', path: '/init' },
  sandbox_not_found: { kind: 'sandbox_not_found', sandboxId },
  forbidden: { kind: 'forbidden', sandboxId, title: '', message },
  in_transition: { kind: 'in_transition', sandboxId, message },
  sandbox_limit: { kind: 'sandbox_limit', sandboxId, message },
  port_closed: { kind: 'port_closed', sandboxId, port: 80 },
  too_many_requests: { kind: 'too_many_requests', sandboxId, limit: 1 },
  edge_full: { kind: 'edge_full' },
  unknown_signature: { kind: 'unknown_signature' },
  too_many_signatures: { kind: 'too_many_signatures' },
  node_unreachable: { kind: 'node_unreachable' },
  api_unreachable: { kind: 'api_unreachable' },
  internal: { kind: 'internal' },
}
