/** Calls of the public API by several teams: the limit of a team is counted over its own sandboxes. */
export interface Calls {
  /** Creates a sandbox of the next team. */
  create(): Promise<CreatedSandbox>
  kill(sandbox: CreatedSandbox): Promise<void>
}

export interface CreatedSandbox {
  readonly id: string
  readonly apiKey: string
}

const shownWarnings = 10

interface CallParts {
  readonly url: string
  readonly adminToken: string
  readonly teamCount: number
  /** Returns the log of the api, which says why a request failed. */
  readonly output: () => string
}

export async function createCalls(parts: CallParts): Promise<Calls> {
  const { adminToken, teamCount } = parts
  const keys: string[] = []
  for (let number = 0; number < teamCount; number += 1) {
    const admin = { 'X-Admin-Token': adminToken }
    const { teamID }: { teamID: string } = JSON.parse(
      await call(parts, admin, 'POST /admin/teams', { name: `team ${number}` }),
    )
    const { key }: { key: string } = JSON.parse(
      await call(parts, admin, `POST /admin/teams/${teamID}/api-keys`, { name: 'bench' }),
    )
    keys.push(key)
  }
  let created = 0
  return {
    async create() {
      const apiKey = keys[created++ % keys.length] ?? ''
      const credentials = { 'X-API-Key': apiKey }
      const body = { templateID: 'base', timeout: 3_600 }
      const { sandboxID }: { sandboxID: string } = JSON.parse(
        await call(parts, credentials, 'POST /v2/sandboxes', body),
      )
      return { id: sandboxID, apiKey }
    },
    async kill({ id, apiKey }) {
      await call(parts, { 'X-API-Key': apiKey }, `DELETE /sandboxes/${id}`)
    },
  }
}

async function call(
  { url, output }: CallParts,
  credentials: Readonly<Record<string, string>>,
  operation: string,
  body?: unknown,
): Promise<string> {
  const [method = '', path = ''] = operation.split(' ')
  const headers = { 'Content-Type': 'application/json', ...credentials }
  const init = { method, headers, body: body === undefined ? null : JSON.stringify(body) }
  const reply = await fetch(`${url}${path}`, init)
  const text = await reply.text()
  if (reply.ok) return text
  const warnings = output()
    .split('\n')
    .filter((line) => /"level":[456]0/.test(line))
  const log = warnings.slice(-shownWarnings).join('\n')
  throw new Error(`${operation} answers ${reply.status}: ${text}\nLog of the api:\n${log}`)
}
