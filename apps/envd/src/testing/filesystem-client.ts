/** Filesystem service of a running envd, for tests: a client and raw calls. */
import { createClient } from '@connectrpc/connect'
import type { Client } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { Filesystem } from '@atoll/contracts/gen/filesystem/filesystem_pb'
import { accessToken } from './running-envd.ts'

export function filesOf(envd: { readonly url: string }): Client<typeof Filesystem> {
  return createClient(
    Filesystem,
    createConnectTransport({
      baseUrl: envd.url,
      httpVersion: '1.1',
      useBinaryFormat: false,
      interceptors: [
        (next) => (request) => {
          request.header.set('x-access-token', accessToken)
          return next(request)
        },
      ],
    }),
  )
}

/** Makes one unary call as raw JSON. */
export async function callFiles(
  envd: { readonly url: string },
  method: string,
  message: unknown,
  headers: Readonly<Record<string, string>> = {},
) {
  const response = await fetch(`${envd.url}/filesystem.Filesystem/${method}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'connect-protocol-version': '1',
      'x-access-token': accessToken,
      ...headers,
    },
    body: typeof message === 'string' ? message : JSON.stringify(message),
  })
  return {
    status: response.status,
    headers: response.headers,
    body: JSON.parse(await response.text()),
  }
}
