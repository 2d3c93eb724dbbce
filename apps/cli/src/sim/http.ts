import type { ServerResponse } from 'node:http'

/** What the simulated platform answers. */
export interface Reply {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

/** As the platform's operations see a request. */
export interface SimulatedRequest {
  readonly method: string
  readonly url: URL
  /** What follows the name of the resource in the path. */
  readonly rest: readonly string[]
  readonly body: Record<string, unknown>
}

export function failure(code: number, message: string, errorCode?: string): Reply {
  return { status: code, body: { code, message, ...(errorCode && { error_code: errorCode }) } }
}

/** Two a page, so that a list of three needs a second one. */
export function page(items: readonly unknown[], url: URL): Reply {
  const skip = Number(url.searchParams.get('nextToken') ?? 0)
  const headers = items.length > skip + 2 ? { 'x-next-token': String(skip + 2) } : {}
  return { status: 200, body: items.slice(skip, skip + 2), headers }
}

export function send(response: ServerResponse, { status, body, headers }: Reply): void {
  response.writeHead(status, headers)
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}
