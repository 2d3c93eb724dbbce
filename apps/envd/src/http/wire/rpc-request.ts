/** Checks method and headers of an RPC before its body is read. */
import type { DescMethod } from '@bufbuild/protobuf'

export interface RpcRefusal {
  readonly status: 400 | 405 | 415
  readonly message: string
  readonly headers: Readonly<Record<string, string>>
}

export function checkRpcRequest(
  kind: DescMethod['methodKind'],
  request: {
    readonly method: string | undefined
    readonly contentType: string | undefined
    readonly protocolVersion: string | undefined
  },
): RpcRefusal | undefined {
  if (request.method !== 'POST') {
    return {
      status: 405,
      message: `Method ${request.method} is not allowed. Use POST.`,
      headers: { allow: 'POST' },
    }
  }
  const connect = kind === 'unary' ? connectUnaryTypes : connectStreamTypes
  const accepted = [...connect, ...grpcTypes]
  const type = request.contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (!accepted.includes(type)) {
    const list = accepted.join(', ')
    return {
      status: 415,
      message: `Content-Type must be one of ${list}`,
      headers: { 'accept-post': list },
    }
  }
  if (connect.includes(type) && request.protocolVersion !== '1') {
    return { status: 400, message: 'Set the header Connect-Protocol-Version to 1', headers: {} }
  }
  return undefined
}

const connectUnaryTypes = ['application/json', 'application/proto']
const connectStreamTypes = ['application/connect+json', 'application/connect+proto']
const grpcTypes = [
  'application/grpc',
  'application/grpc+proto',
  'application/grpc+json',
  'application/grpc-web',
  'application/grpc-web+proto',
  'application/grpc-web+json',
]

/** Maximum of setTimeout, 24.8 days; it fires longer timers at once. */
export const timeoutLimitMs = 2 ** 31 - 1

/** Clamps the deadline to the timer's maximum, which no sandbox outlives. */
export function boundedTimeout(header: string): string {
  return /^\d{10}$/.test(header) && Number(header) > timeoutLimitMs
    ? String(timeoutLimitMs)
    : header
}
