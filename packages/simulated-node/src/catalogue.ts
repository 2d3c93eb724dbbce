import type {
  InstallTemplateRequest,
  NodeService,
} from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { ServiceImpl } from '@connectrpc/connect'
import type { FailureInjector } from './failure-injector.ts'

/** Simulated catalogue with one template. Tests hold and fail calls by the operations `install` and `listCatalogue`. */
export interface SimulatedCatalogue {
  /** Received install requests, in order. */
  readonly requests: readonly InstallTemplateRequest[]
  /** Removes the installed files, as a changed recipe does. */
  uninstall(): void
}

type Methods = Pick<ServiceImpl<typeof NodeService>, 'listCatalogue' | 'installTemplate'>

export const simulatedCatalogueTemplate = 'toolsv1'

const template = {
  templateId: simulatedCatalogueTemplate,
  name: 'tools',
  alias: 'tools-v1',
  description: 'Tools for tests',
  leastMemoryMb: 600,
}

export function simulateCatalogue(
  failures: FailureInjector,
): SimulatedCatalogue & { readonly methods: Methods } {
  const requests: InstallTemplateRequest[] = []
  let isInstalled = false
  return {
    requests,
    uninstall: () => void (isInstalled = false),
    methods: {
      async listCatalogue() {
        await failures.apply('listCatalogue')
        return { templates: [{ ...template, isInstalled }] }
      },
      async *installTemplate(request) {
        requests.push(request)
        yield { label: 'installing', fraction: 0.5 }
        await failures.apply('install')
        isInstalled = true
        yield { label: 'done', fraction: 1 }
      },
    },
  }
}
