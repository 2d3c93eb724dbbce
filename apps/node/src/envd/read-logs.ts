import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import { logLevels } from '../domain/sandboxes/log.ts'
import type { LogEntry } from '../domain/sandboxes/log.ts'
import { envdPort } from './port.ts'

/**
 * Reads the log entries of a sandbox's envd that are newer than `afterMs`.
 *
 * Threats: an attacker who took over the sandbox can send any answer as slowly as they like. The whole exchange has a
 * time limit and the answer a size limit. The answer must match envd's format, its times must increase and must not be
 * far in the future, and every text is cut.
 */
export async function readEnvdLogs(
  source: { readonly address: string; readonly initToken: string; readonly port?: number },
  afterMs: number,
  options: { readonly timeoutMs: number; readonly nowMs: number },
): Promise<{ readonly entries: LogEntry[]; readonly more: boolean }> {
  const signal = AbortSignal.timeout(options.timeoutMs)
  const text = await fetchText(source, `/logs?after=${afterMs}`, signal).catch((cause: unknown) => {
    throw Fault.from(cause).kind === 'internal' ? unusable('did not answer', cause) : cause
  })
  return parseAnswer(text, afterMs, options.nowMs)
}

async function fetchText(
  { address, initToken, port = envdPort }: Parameters<typeof readEnvdLogs>[0],
  path: string,
  signal: AbortSignal,
): Promise<string> {
  // Use a new connection each time: none may be open when the sandbox is copied.
  const headers = { 'x-init-token': initToken }
  const outgoing = request({ host: address, port, path, agent: false, signal, headers })
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve).on('error', reject)
    // Some failures emit no error: a protocol upgrade offer only closes the connection.
    outgoing.once('close', () => reject(unusable('closed the connection'))).end()
  })
  try {
    if (response.statusCode !== 200) throw unusable(`answered ${response.statusCode}`)
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of response) {
      size += chunk.length
      if (size > answerLimitBytes) throw unusable(`answered more than ${answerLimitBytes} bytes`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString('utf8')
  } finally {
    response.destroy()
  }
}

function parseAnswer(text: string, afterMs: number, nowMs: number) {
  const { data } = Answer.safeParse(parseJson(text))
  if (!data) throw unusable('answered something else than its log')
  const latestMs = Math.max(nowMs, afterMs) + aheadLimitMs
  let last = afterMs
  for (const { at } of data.entries) {
    if (at <= last || at > latestMs) throw unusable('answered times out of order')
    last = at
  }
  return data
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const cutTo = (limit: number) => z.string().transform((text) => text.slice(0, limit).toWellFormed())

const Answer = z.object({
  more: z.boolean(),
  entries: z
    .array(
      z.object({
        at: z.int(),
        level: z.enum(logLevels),
        message: cutTo(4096),
        fields: z
          .record(z.string().regex(/^[a-z]\w{0,63}$/i), cutTo(2048))
          .refine((fields) => Object.keys(fields).length <= 16),
      }),
    )
    .max(5000),
})

/** Size limit of an answer from envd, with the longest encoding of each character. */
const answerLimitBytes = 1024 * 1024
/** envd's times run ahead of the clock in a burst, and clocks may be changed. */
const aheadLimitMs = 60_000

function unusable(what: string, cause?: unknown): Fault {
  return new Fault('unavailable', 'envd_unusable', `envd ${what} when asked for its log`, { cause })
}
