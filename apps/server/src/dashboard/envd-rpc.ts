/** Calls of the pages to envd, from a fixed list. Answers are JSON, whatever the sandbox says they are. */
import type { ServerResponse } from 'node:http'
import { Fault } from '@atoll/kit/fault'
import { faultFromReply } from '@atoll/client/http-fault'
import { sendJson } from './responses.ts'
import { envdHeaders } from './sandbox-access.ts'
import type { SandboxAccess } from './sandbox-access.ts'
import { readBounded } from './upstream.ts'
import type { Upstream } from './upstream.ts'

const services = {
  Stat: 'filesystem.Filesystem',
  MakeDir: 'filesystem.Filesystem',
  Move: 'filesystem.Filesystem',
  ListDir: 'filesystem.Filesystem',
  Remove: 'filesystem.Filesystem',
  List: 'process.Process',
  SendSignal: 'process.Process',
} as const

const maxAnswerBytes = 16 * 2 ** 20
const limitMs = 30_000

export interface EnvdCall {
  readonly envd: Upstream
  readonly access: SandboxAccess
  readonly method: string
  readonly request: unknown
}

export async function callEnvd(res: ServerResponse, call: EnvdCall): Promise<void> {
  sendJson(res, 200, await askEnvd(call))
}

export async function askEnvd(call: EnvdCall): Promise<unknown> {
  const service = Object.entries(services).find(([name]) => name === call.method)?.[1]
  if (!service) throw new Fault('not_found', 'no_method', `There is no method ${call.method}`)
  const reply = await call.envd.send({
    method: 'POST',
    path: `/${service}/${call.method}`,
    headers: {
      ...envdHeaders(call.access),
      'content-type': 'application/json',
      'connect-protocol-version': '1',
    },
    body: JSON.stringify(call.request),
    signal: AbortSignal.timeout(limitMs),
  })
  const answer = parseAnswer(await readBounded(reply, maxAnswerBytes))
  if (reply.statusCode !== 200) throw faultFromReply(reply.statusCode ?? 502, toErrorBody(answer))
  return answer
}

function parseAnswer(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Fault('unavailable', 'envd_answer', 'The sandbox sent an answer that is not JSON', {
      cause,
    })
  }
}

const maxMessageLength = 2_000

/** Connect errors name their code by a word; the fault needs only the message. */
export function toErrorBody(answer: unknown): unknown {
  const isNamed = typeof answer === 'object' && answer !== null && 'message' in answer
  const message = isNamed ? String(answer.message) : 'The sandbox refused the request'
  return { code: 0, message: message.slice(0, maxMessageLength) }
}
