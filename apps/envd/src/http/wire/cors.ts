import type { IncomingMessage, ServerResponse } from 'node:http'

/** Allows all origins: the access token protects the sandbox, and browsers never send it on their own. */
export function allowAnyOrigin(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.origin === undefined) return
  response.setHeader('access-control-allow-origin', '*')
  response.setHeader('access-control-expose-headers', exposedHeaders)
  response.setHeader('vary', 'Origin')
}

export function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
}

/** Echoes the requested headers, because `*` excludes Authorization. */
export function sendPreflightResponse(request: IncomingMessage, response: ServerResponse): void {
  const requestedHeaders = request.headers['access-control-request-headers']
  response.writeHead(204, {
    'access-control-allow-methods': 'HEAD, GET, POST, PUT, PATCH, DELETE',
    'access-control-allow-headers': requestedHeaders || '*',
    'access-control-max-age': '7200',
  })
  response.end()
}

const exposedHeaders = [
  'Grpc-Status',
  'Grpc-Message',
  'Grpc-Status-Details-Bin',
  'Location',
  'Cache-Control',
  'X-Content-Type-Options',
].join(', ')
