import type { ServerResponse } from 'node:http'

export interface Reply {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

/** A parsed request to the simulated platform API. */
export interface SimulatedRequest {
  readonly method: string
  readonly url: URL
  /** Path segments after the resource name. */
  readonly rest: readonly string[]
  readonly body: Record<string, unknown>
}

export function failure(code: number, message: string, errorCode?: string): Reply {
  return { status: code, body: { code, message, ...(errorCode && { error_code: errorCode }) } }
}

/** Returns two items per page, so that short lists need several pages. */
export function page(items: readonly unknown[], url: URL): Reply {
  const skip = Number(url.searchParams.get('nextToken') ?? 0)
  const headers = items.length > skip + 2 ? { 'x-next-token': String(skip + 2) } : {}
  return { status: 200, body: items.slice(skip, skip + 2), headers }
}

export function send(response: ServerResponse, { status, body, headers }: Reply): void {
  response.writeHead(status, headers)
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}
