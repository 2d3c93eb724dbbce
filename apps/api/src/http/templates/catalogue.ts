import {
  installTemplate,
  installTemplateAsOperator,
  listCatalogue,
} from '@atoll/contracts/templates/catalogue'
import type { CatalogueTemplate } from '@atoll/contracts/templates/catalogue'
import { Fault } from '@atoll/kit/fault'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import type { Catalogue, CatalogueView } from '../../app/catalogue/catalogue.ts'
import type { Authenticate } from '../../app/teams/auth.ts'
import { addAdminRoute, addTeamRoute } from '../server/route.ts'

export function addCatalogueRoutes(
  server: FastifyInstance,
  { authenticate, catalogue }: { authenticate: Authenticate; catalogue: Catalogue },
): void {
  const install = async (name: string, by: 'operator' | 'team') => {
    const template = await catalogue.find(name)
    if (template) return { status: 202, body: toView(catalogue.install(template, by)) }
    throw new Fault(
      'not_found',
      'not_in_catalogue',
      `The catalogue has no template ${name}: GET /catalogue lists them`,
    )
  }
  addTeamRoute(server, listCatalogue, authenticate, async () => ({
    status: 200,
    body: (await catalogue.list()).map(toView),
  }))
  addTeamRoute(server, installTemplate, authenticate, ({ params }) => install(params.name, 'team'))
  addAdminRoute(server, installTemplateAsOperator, authenticate, ({ params }) =>
    install(params.name, 'operator'),
  )
}

function toView({
  name,
  alias,
  description,
  isInstalled,
  progress,
  failure,
}: CatalogueView): z.infer<typeof CatalogueTemplate> {
  const idle = failure ? 'failed' : isInstalled ? 'installed' : 'absent'
  return {
    name,
    templateName: alias,
    description,
    state: progress ? 'installing' : idle,
    ...(progress && {
      progress: { label: progress.label, percent: Math.floor(progress.fraction * 100) },
    }),
    ...(failure && { failure: failure.message }),
  }
}
