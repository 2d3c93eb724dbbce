import { Fault } from '@atoll/kit/fault'
import { parseReference } from '../../domain/template.ts'
import type { LocatedTemplate, TemplateStore } from '../../domain/template.ts'

/**
 * Finds a template that the team may change, by ID or name. Another team's template is reported as forbidden, not as
 * missing, because clients expect that.
 */
export async function findOwnTemplate(
  templates: Pick<TemplateStore, 'locate'>,
  text: string,
  teamId: string,
): Promise<LocatedTemplate> {
  const reference = parseReference(text)
  if (reference.tag !== undefined) {
    throw new Fault(
      'invalid',
      'invalid_template_reference',
      'templateID must be a template id or name without a tag',
    )
  }
  const template = await templates.locate(reference, teamId)
  if (!template || (template.isSnapshot && template.teamId === teamId)) {
    const hint = template ? ': it is a snapshot' : ''
    throw new Fault('not_found', 'template_not_found', `Template ${text} was not found${hint}`)
  }
  if (template.teamId === teamId) return template
  throw new Fault(
    'forbidden',
    'template_forbidden',
    `Template ${text} does not belong to your team`,
  )
}
