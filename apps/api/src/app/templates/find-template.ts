import { Fault } from '@atoll/kit/fault'
import { mayUse, parseReference } from '../../domain/template.ts'
import type { Template, TemplateStore } from '../../domain/template.ts'

type Templates = Pick<TemplateStore, 'locate' | 'findBuild'>

/** SDKs create sandboxes of this template for the option `mcp`. */
const mcpGateway = {
  name: 'mcp-gateway',
  advice:
    'Atoll has no MCP gateway. Leave out `mcp` and run MCP servers in the sandbox yourself, or build a template ' +
    'named mcp-gateway that contains the program mcp-gateway',
}

/**
 * Resolves a template reference for a team. A template that the team may not use is reported as not found. `field` is
 * the name of the field in the request.
 */
export async function findTemplate(
  templates: Templates,
  text: string,
  teamId: string,
  field = 'templateID',
): Promise<Template> {
  const reference = parseReference(text, field)
  const { name, tag } = reference
  const template = await templates.locate(reference, teamId)
  if (!template || !mayUse(template, teamId)) {
    const advice =
      name === mcpGateway.name ? mcpGateway.advice : `check ${field}; "base" is always there`
    throw notFound(`Template ${text} was not found: ${advice}`)
  }
  const build = await templates.findBuild(template.id, tag)
  if (build) return build
  const asked = tag ?? 'default'
  throw notFound(
    `Template ${name} has no tag or build ${asked}: it was not found, or no build of it is ready`,
  )
}

/** Resolves a list filter to a template ID; undefined when the team cannot use such a template. */
export async function findTemplateId(
  templates: Templates,
  text: string,
  teamId: string,
): Promise<string | undefined> {
  const reference = parseReference(text)
  if (reference.tag !== undefined) {
    throw new Fault(
      'invalid',
      'invalid_template_reference',
      'template must be a template id or name without a tag',
    )
  }
  const template = await templates.locate(reference, teamId)
  return template && mayUse(template, teamId) ? template.id : undefined
}

function notFound(message: string): Fault {
  return new Fault('not_found', 'template_not_found', message)
}
