import type { PlatformClient } from '@atoll/client/platform'
import type { BuildRecipe } from '@atoll/client/platform/builds'

/** Image or template that a build starts from. */
export interface Origin {
  readonly from: Pick<BuildRecipe, 'fromImage' | 'fromTemplate'>
  /** Whether steps continue with the user and directory of the template. Otherwise they run as root in `/`. */
  readonly keepsUserAndDirectory: boolean
  readonly description: string
}

/**
 * Resolves FROM of a Dockerfile like the server's own Dockerfile builds: a template that the team may use, one of the
 * catalogue, or an image. A name alone never means the template that is being built.
 */
export async function findOrigin(
  platform: PlatformClient,
  from: string,
  target: string,
): Promise<Origin> {
  if (from === 'base') return ofTemplate('base', false)
  const isReference = /^[a-z0-9][a-z0-9_-]*(\/[a-z0-9][a-z0-9_-]*)?(:[\w.-]+)?$/i.test(from)
  if (!isReference) return ofImage(from)
  const catalogue = await platform.listCatalogue()
  const listed = catalogue.find((entry) => entry.name === from || entry.templateName === from)
  if (listed) return ofTemplate(listed.templateName, false)
  const isTarget = from === target.split(':')[0]
  const isTemplate = !isTarget && (await platform.mayUseTemplate(from))
  return isTemplate ? ofTemplate(from, true) : ofImage(from)
}

function ofTemplate(name: string, keepsUserAndDirectory: boolean): Origin {
  return { from: { fromTemplate: name }, keepsUserAndDirectory, description: `template ${name}` }
}

function ofImage(image: string): Origin {
  return { from: { fromImage: image }, keepsUserAndDirectory: false, description: `image ${image}` }
}
