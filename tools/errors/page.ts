import { publishedReasons } from '@atoll/contracts/errors'
import { Fault } from '@atoll/kit/fault'
import type { FaultKind } from '@atoll/kit/fault'
import { toFailure } from '../../apps/api/src/http/server/errors.ts'
import { responseFor } from '../../apps/edge/src/http/error-response.ts'
import { toConnectError } from '../../apps/envd/src/http/wire/fault-interceptor.ts'
import { httpStatusOf } from '../../apps/envd/src/http/wire/http-status.ts'
import { statusOfKind } from '../../apps/server/src/dashboard/responses.ts'
import { areasOf } from './areas.ts'
import type { Area } from './areas.ts'
import { refusals } from './edge.ts'
import type { EntryGroup } from './entry.ts'
import type { FoundFault } from './find-faults.ts'
import { kindAdvice, kinds } from './kinds.ts'

type Columns = Readonly<Record<string, (fault: Fault) => string>>

/** Columns between the reason and its meaning. The code that answers requests computes their values. */
const columnsOf: Readonly<Record<Area, Columns>> = {
  api: { status: (fault) => String(toFailure(fault, '').body.code) },
  envd: {
    status: (fault) => String(httpStatusOf(fault)),
    'Connect code': ({ kind }) => connectName(kind),
  },
  edge: { status: (fault) => String(edgeStatus(fault)) },
  dashboard: { status: ({ kind }) => String(statusOfKind[kind]) },
  cli: {},
  start: {},
  node: {},
}

export function renderErrorsPage(
  faults: readonly FoundFault[],
  groups: readonly EntryGroup[],
): string {
  const published: ReadonlySet<string> = new Set(publishedReasons)
  const isSent = (area: Area, reason: string) => area === 'api' && published.has(reason)
  const sent = Object.fromEntries(
    groups
      .filter(({ area }) => area === 'api')
      .flatMap(({ entries }) => Object.entries(entries))
      .filter(([reason]) => published.has(reason)),
  )
  const tables = [
    { area: 'api', title: 'Platform API: sent as `error_code`', entries: sent } as const,
    ...groups.map((group) => ({
      ...group,
      entries: Object.fromEntries(
        Object.entries(group.entries).filter(([reason]) => !isSent(group.area, reason)),
      ),
    })),
  ]
  return `${head}\n${tables.map((group) => renderGroup(group, faults)).join('\n')}`
}

function renderGroup({ area, title, intro, entries }: EntryGroup, faults: readonly FoundFault[]) {
  const columns = columnsOf[area]
  const names = ['reason', ...Object.keys(columns), 'meaning', 'what to do']
  const rows = Object.entries(entries)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([reason, [meaning, remedy]]) => {
      const samples = samplesOf(area, reason, faults)
      const values = Object.values(columns).map((valueOf) =>
        [...new Set(samples.map(valueOf))].toSorted().join(', '),
      )
      return row([`\`${reason}\``, ...values, meaning, remedy])
    })
  const start = intro === undefined ? '' : `${intro}\n\n`
  return `## ${title}\n\n${start}${[row(names), row(names.map(() => '---')), ...rows].join('\n')}\n`
}

/** Returns one fault of each kind that the reason has in the area. */
function samplesOf(area: Area, reason: string, faults: readonly FoundFault[]): Fault[] {
  const found = faults.filter((one) => one.reason === reason && areasOf(one.path)?.includes(area))
  // Answers without a fault, such as refusals of the edge.
  const kindsFound = found.length === 0 ? ['internal' as const] : found.map(({ kind }) => kind)
  return [...new Set(kindsFound)].map((kind) => new Fault(kind, reason, ''))
}

/** The edge answers its own faults, and those of the API that it asks, by refusals. */
function edgeStatus({ kind, reason }: Fault): number {
  const refusal = Object.values(refusals).find((one) => one.kind === reason)
  if (refusal) return responseFor(refusal).status
  return responseFor(kind === 'forbidden' ? refusals.forbidden : refusals.node_unreachable).status
}

function connectName(kind: FaultKind): string {
  const { message } = toConnectError(new Fault(kind, '', ''), () => {})
  // The message of a Connect error starts with its code in brackets.
  return message.replace(/^\[(\w+)\].*/, '`$1`')
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}

const example = new Fault(
  'conflict',
  'sandbox_paused',
  'Sandbox ic2x8mpt6ow1qvd7rk4fz is already paused',
)

const kindRows = kinds.map((kind) => {
  const fault = new Fault(kind, '', '')
  return row([
    `\`${kind}\``,
    String(toFailure(fault, '').body.code),
    connectName(kind),
    kindAdvice[kind],
  ])
})

const head = `# Errors

Every expected failure of Atoll has a kind, a reason and a message. \`npm run generate\` makes this page from the sources and from the
explanations in \`tools/errors\`; a check fails when a reason is missing here.

An error of the platform API is JSON:

\`\`\`json
${JSON.stringify(toFailure(example, '').body)}
\`\`\`

| field | meaning |
| --- | --- |
| \`code\` | the HTTP status |
| \`message\` | what failed, why, and what to do; its wording may change |
| \`error_code\` | the reason, for the few reasons that programs need; absent otherwise |

A fork has the same body for each copy that failed. Programs should decide by \`error_code\` and by the status. The other reasons on this page are not sent: find them by status and
message. The server log has the reason of every error from 500 on. Answers have no request ID, except that the message of
\`internal_server_error\` ends with the \`requestId\` of the log.

The kind decides the status and whether a retry can help. A full disk is the exception: \`disk_full\` has the status 507, and only
deleting helps.

${[row(['kind', 'HTTP status', 'Connect code', 'worth a retry?']), row(['---', '---', '---', '---']), ...kindRows].join('\n')}

Some answers come before any of this and have no reason: 404 and 405 for paths and methods that do not exist, 413, 414 and 415 for
bodies and paths that are too large or not JSON, 400 and 431 for malformed HTTP, and 503 with \`Retry-After\` while the server starts,
stops or has too many connections.
`
