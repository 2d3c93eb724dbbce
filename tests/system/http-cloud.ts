/** HTTP client, written from the documentation alone. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { install } from './installation.ts'
import type { Installation } from './installation.ts'
import { basic, frame, messagesOf, open, send } from './wire.ts'
import type { Message, Reply } from './wire.ts'

export const envdPort = 49_983

export interface HttpSandbox {
  readonly sandboxID: string
  readonly envdAccessToken?: string
}

export interface HttpCloud extends AsyncDisposable {
  readonly installation: Installation
  platform(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Reply>
  createSandbox(body?: object): Promise<HttpSandbox>
}

export async function startCloud(
  settings: Record<string, string>,
  options?: Parameters<typeof install>[1],
): Promise<HttpCloud> {
  const installation = await install(settings, options)
  const platform: HttpCloud['platform'] = (method, path, body, headers) =>
    send(installation.url, {
      method,
      path,
      headers: {
        'X-API-Key': installation.apiKey,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
  return {
    installation,
    platform,
    async createSandbox(body = {}) {
      const { status, text } = await platform('POST', '/v2/sandboxes', {
        templateID: 'base',
        timeout: 600,
        ...body,
      })
      assert.equal(status, 201, text)
      const sandbox: HttpSandbox = JSON.parse(text)
      return sandbox
    },
    [Symbol.asyncDispose]: () => installation[Symbol.asyncDispose](),
  }
}

/** Returns the headers that every request to envd needs. */
export function envdHeaders(sandbox: HttpSandbox, prefix = 'Svc'): Record<string, string> {
  return {
    'Connect-Protocol-Version': '1',
    [`${prefix}-Sandbox-Id`]: sandbox.sandboxID,
    [`${prefix}-Sandbox-Port`]: String(envdPort),
    ...(sandbox.envdAccessToken !== undefined && { 'X-Access-Token': sandbox.envdAccessToken }),
  }
}

export interface ProcessStream {
  readonly pid: number
  readonly socket: Socket
  /** Returns the next message; undefined at the end of the stream. */
  next(): Promise<(Message & { readonly flags: number }) | undefined>
  /** Reads until the decoded output so far matches the pattern. */
  readUntil(pattern: RegExp): Promise<string>
  /** Reads all remaining messages. */
  readRemaining(): Promise<(Message & { readonly flags: number })[]>
}

export interface StreamCall {
  readonly method?: 'Start' | 'Connect'
  readonly user?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Opens a stream of the process service and reads its first message. */
export async function openProcess(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: object,
  { method = 'Start', user, headers: extraHeaders }: StreamCall = {},
): Promise<ProcessStream> {
  const response = await open(url, {
    method: 'POST',
    path: `/process.Process/${method}`,
    headers: {
      'Content-Type': 'application/connect+json',
      ...headers,
      ...(user !== undefined && { Authorization: basic(user) }),
      ...extraHeaders,
    },
    body: frame(JSON.stringify(body)),
  })
  assert.equal(response.statusCode, 200)
  assert.equal(response.headers['content-type'], 'application/connect+json')
  const messages = messagesOf(response)
  const firstMessage = (await messages.next()).value
  assert.ok(firstMessage?.event?.start, JSON.stringify(firstMessage))
  let output = ''
  const next = async () => (await messages.next()).value ?? undefined
  return {
    pid: firstMessage.event.start.pid,
    socket: response.socket,
    next,
    async readUntil(pattern) {
      while (!pattern.test(output)) {
        const message = await next()
        assert.ok(message, `the stream ended before ${pattern}: ${output}`)
        output += outputOf([message])
      }
      return output
    },
    readRemaining: () => Array.fromAsync(messages),
  }
}

/** Returns the decoded output of stdout, stderr and pty together. */
export function outputOf(messages: readonly Message[]): string {
  return messages
    .map(({ event }) => event?.data?.stdout ?? event?.data?.stderr ?? event?.data?.pty ?? '')
    .map((base64) => Buffer.from(base64, 'base64').toString('utf8'))
    .join('')
}

export function shell(script: string): object {
  return { process: { cmd: '/bin/bash', args: ['-c', script] }, stdin: false }
}
