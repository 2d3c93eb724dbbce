/** Answers that a live connection may watch: reads of the platform API, processes of a sandbox, denied connections. */
import { Fault } from '@atoll/kit/fault'
import { deniedPath, readDenied } from '../denied-connections.ts'
import { askEnvd } from '../envd-rpc.ts'
import { askPlatform, platformPrefix, tagOf } from '../platform.ts'
import { statusOfKind } from '../responses.ts'
import { findSandbox } from '../sandbox-access.ts'
import type { Upstream } from '../upstream.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
  /** Changes with the content. */
  readonly tag: string
}

export interface AnswerSource {
  readonly platform: Upstream
  readonly envd: Upstream
  readonly apiKey: string
}

const processesPath = /^\/bff\/sandboxes\/([a-z0-9]{1,63})\/processes$/

/** A failure is an answer too: the page shows it beside what it had before. */
export async function readAnswer(
  source: AnswerSource,
  path: string,
  signal: AbortSignal,
): Promise<Answer> {
  try {
    return await read(source, path, signal)
  } catch (thrown) {
    signal.throwIfAborted()
    const { kind, message } = Fault.from(thrown)
    const status = statusOfKind[kind]
    const body = { code: status, message }
    return { status, headers: {}, body, tag: tagOf(status, body) }
  }
}

async function read(source: AnswerSource, path: string, signal: AbortSignal): Promise<Answer> {
  if (path.startsWith(`${platformPrefix}/`)) {
    const { status, headers, body } = await askPlatform({
      platform: source.platform,
      apiKey: source.apiKey,
      path: path.slice(platformPrefix.length),
      signal,
    })
    return { status, headers, body, tag: tagOf(status, body, headers) }
  }
  if (path === deniedPath) {
    const body = await readDenied(source, signal)
    return { status: 200, headers: {}, body, tag: tagOf(200, body) }
  }
  const sandboxId = processesPath.exec(path)?.[1]
  if (!sandboxId) throw new Fault('not_found', 'no_path', `There is nothing to watch at ${path}`)
  const access = await findSandbox(source.platform, source.apiKey, sandboxId)
  const call = { envd: source.envd, access, method: 'List', request: {} }
  const body = await askEnvd(call)
  return { status: 200, headers: {}, body, tag: tagOf(200, body) }
}
