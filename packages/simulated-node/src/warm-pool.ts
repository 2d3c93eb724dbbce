import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { waitFor } from '@atoll/kit/wait'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ServiceImpl } from '@connectrpc/connect'
import type { FailureInjector } from './failure-injector.ts'
import type { SimulatedShape } from './sandbox.ts'

interface Offer {
  readonly accessToken: string
  readonly resolve: (shape: SimulatedShape) => void
}

type Methods = Pick<ServiceImpl<typeof NodeService>, 'nameReadySandbox'>

/** Simulates pre-warmed sandboxes that take identities which the API offers in advance. */
export function simulateWarmPool(failures: FailureInjector) {
  const offered = new Map<string, Offer>()
  const ready = new Set<string>()
  const methods: Methods = {
    async nameReadySandbox({ sandboxId, accessToken }, { signal }) {
      await failures.apply('name')
      const { promise, resolve, reject } = Promise.withResolvers<SimulatedShape>()
      offered.set(sandboxId, { accessToken, resolve })
      signal.addEventListener('abort', () => {
        offered.delete(sandboxId)
        reject(new ConnectError('the API withdrew its offer', Code.Canceled))
      })
      return promise
    },
  }
  return {
    methods,
    /** Returns whether the sandbox was ready, and removes it from the pool. */
    take: (id: string) => ready.delete(id),
    async stock(shape: SimulatedShape) {
      await waitFor('an ID to be offered', () => offered.size > 0)
      const [first] = offered
      if (!first) throw new Error('the API withdrew its offer of a sandbox ID')
      const [id, { accessToken, resolve }] = first
      const before = new Set(offered.keys())
      offered.delete(id)
      ready.add(id)
      resolve(shape)
      // The API offers another ID once it has received this one.
      await waitFor('the next offer', () => [...offered.keys()].some((name) => !before.has(name)))
      return { id, accessToken }
    },
  }
}
