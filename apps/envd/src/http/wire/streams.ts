import { Code, ConnectError } from '@connectrpc/connect'

/** Why a stream ends early: its deadline, the end of the daemon, or its caller's leaving. */
export function abortReason(signal: AbortSignal): ConnectError {
  return signal.reason instanceof ConnectError
    ? signal.reason
    : new ConnectError('The client left', Code.Canceled)
}

/** Seconds in the header Keepalive-Ping-Interval; whatever is not a positive whole number means the default. */
export function keepaliveIntervalMs(header: string | null): number {
  const seconds = /^\d{1,6}$/.test(header ?? '') ? Number(header) : 0
  return (seconds > 0 ? seconds : 90) * 1000
}
