import { AsyncLocalStorage } from 'node:async_hooks'

/** Returns a function that runs others in the asynchronous context of this call, such as outside of all requests. */
export function captureContext(): <T>(work: () => T) => T {
  return AsyncLocalStorage.snapshot()
}
