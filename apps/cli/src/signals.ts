import type { Host } from './context.ts'

/** Calls `handle` for SIGINT, SIGTERM and SIGHUP until disposed. */
export function onEndSignal(
  host: Pick<Host, 'process'>,
  handle: (signal: EndSignal) => void,
): Disposable {
  for (const signal of endSignals) host.process.on(signal, handle)
  return {
    [Symbol.dispose]() {
      for (const signal of endSignals) host.process.off(signal, handle)
    },
  }
}

export type EndSignal = (typeof endSignals)[number]

const endSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export function exitCodeOfSignal(signal: EndSignal): number {
  return 128 + { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }[signal]
}
