/** POST /init: the node sends the settings of the sandbox. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Fault } from '@atoll/kit/fault'
import type { Sandbox } from '../../app/sandbox.ts'
import { parseChange } from '../../domain/sandbox/settings.ts'
import { sendText } from '../wire/responses.ts'
import { rejectUnlessNode } from './require-node.ts'

export async function handleInit(
  request: IncomingMessage,
  response: ServerResponse,
  deps: { readonly sandbox: Sandbox; readonly initToken?: string | undefined },
): Promise<void> {
  if (rejectUnlessNode(request, response, deps.initToken)) return
  try {
    await deps.sandbox.change(parseChange(parseJson(await readBody(request))))
  } catch (thrown) {
    if (!(thrown instanceof Fault) || thrown.kind !== 'invalid') throw thrown
    return sendText(response, 400, thrown.message)
  }
  response.writeHead(204, { 'cache-control': 'no-store' }).end()
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > bodyLimitBytes) {
      throw new Fault(
        'invalid',
        'bad_init',
        `The request body exceeds the limit of ${bodyLimitBytes} bytes`,
      )
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const bodyLimitBytes = 4 * 1024 * 1024

function parseJson(text: string): unknown {
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Fault('invalid', 'bad_init', 'The request body is not valid JSON', { cause })
  }
}
