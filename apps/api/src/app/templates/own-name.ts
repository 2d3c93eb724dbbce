import { Fault } from '@atoll/kit/fault'
import type { TeamStore } from '../../domain/teams/team.ts'
import { checkTag, parseReference } from '../../domain/template.ts'
import type { TemplateName } from '../../domain/template.ts'

/** Parses a name `[namespace/]alias[:tag]` for a new object of the team; the namespace must be the team's own. */
export async function readOwnName(
  teams: Pick<TeamStore, 'find'>,
  text: string,
  teamId: string,
): Promise<{ readonly name: TemplateName; readonly tag: string | undefined }> {
  const { namespace, name: alias, tag } = parseReference(text, 'name')
  if (tag !== undefined) checkTag(tag)
  const own = (await teams.find(teamId))?.slug ?? ''
  if (namespace !== undefined && namespace !== own) {
    throw new Fault(
      'invalid',
      'foreign_namespace',
      `name must have the namespace of the team, "${own}", or no namespace`,
    )
  }
  return { name: { namespace: own, alias }, tag }
}
