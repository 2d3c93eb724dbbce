import { Code, ConnectError } from '@connectrpc/connect'

/** Reason why a stream ended early: its deadline, the shutdown of envd, or a disconnect. */
export function abortReason(signal: AbortSignal): ConnectError {
  return signal.reason instanceof ConnectError
    ? signal.reason
    : new ConnectError('The client disconnected', Code.Canceled)
}

/** Parses the Keepalive-Ping-Interval header, in seconds. Anything but a positive integer means the default, 90 s. */
export function keepaliveIntervalMs(header: string | null): number {
  const seconds = /^\d{1,6}$/.test(header ?? '') ? Number(header) : 0
  return (seconds > 0 ? seconds : 90) * 1000
}
