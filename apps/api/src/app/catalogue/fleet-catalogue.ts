import { setTimeout as sleep } from 'node:timers/promises'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import type { CatalogueNode, CatalogueTemplate, InstallProgress } from '../../domain/catalogue.ts'
import type { Fleet, Member } from '../nodes/fleet.ts'
import type { Placing } from '../nodes/placing.ts'

/**
 * Catalogue of all nodes together. A template counts as installed once every node in reach that has answered has it. While
 * only some have it, sandboxes start on those.
 */
export interface FleetCatalogue extends Pick<CatalogueNode, 'install'> {
  /**
   * Asks the nodes that have not answered since their agents started. Waits a second for them; longer only if no node has
   * answered ever. Throws when none answers.
   */
  list(): Promise<readonly CatalogueTemplate[]>
  /** Whether the last list was made for the nodes that are in reach now. */
  isOfAllNodes(): boolean
  /** Whether a node that takes new sandboxes has the template. */
  isOnSomeNode(nodeTemplateId: string): boolean
  /** False if the template is of the catalogue, and the node is not known to have it. */
  mayStartOn(nodeId: string, nodeTemplateId: string): boolean
}

interface Answer {
  readonly instanceId: string | undefined
  readonly templates: readonly CatalogueTemplate[]
}

const patienceMs = 1_000
const askLimitMs = 5_000
/** The answers of a thousand nodes at once would hold up requests. */
const asksAtOnce = 50

export function createFleetCatalogue(
  fleet: Pick<Fleet, 'any' | 'ids' | 'member'>,
  placing: Pick<Placing, 'conditionOf'>,
): FleetCatalogue {
  const answers = new WeakMap<Member, Answer>()
  const ask = createAsking(answers)
  const catalogueIds = new Set<string>()
  let listedIds: readonly string[] | undefined

  const inReach = (): Member[] => {
    const members = fleet.ids().map(fleet.member)
    return members.length > 0 ? members : [fleet.any()]
  }
  const hasAnswered = (member: Member): boolean => {
    const answer = answers.get(member)
    return answer !== undefined && answer.instanceId === member.facts()?.instanceId
  }
  const noteInstalled = (member: Member, nodeTemplateId: string): void => {
    const answer = answers.get(member)
    if (!answer) return
    const templates = answer.templates.map((one) =>
      one.nodeTemplateId === nodeTemplateId ? { ...one, isInstalled: true } : one,
    )
    answers.set(member, { ...answer, templates })
  }
  const has = (member: Member, nodeTemplateId: string): boolean | undefined =>
    answers.get(member)?.templates.find((one) => one.nodeTemplateId === nodeTemplateId)?.isInstalled
  return {
    isOnSomeNode: (nodeTemplateId) =>
      fleet
        .ids()
        .some((id) => placing.conditionOf(id) === 'well' && has(fleet.member(id), nodeTemplateId)),
    mayStartOn: (nodeId, nodeTemplateId) =>
      has(fleet.member(nodeId), nodeTemplateId) ?? !catalogueIds.has(nodeTemplateId),
    async list() {
      listedIds = fleet.ids()
      const members = inReach()
      const asked = members.filter((one) => !hasAnswered(one)).map(ask)
      const all = Promise.allSettled(asked)
      if (asked.length > 0) await Promise.race([all, sleep(patienceMs, undefined, { ref: false })])
      if (!members.some((one) => answers.has(one)))
        await Promise.any(asked).catch(() => Promise.all(asked))
      const templates = merge(members.flatMap((one) => answers.get(one)?.templates ?? []))
      for (const { nodeTemplateId } of templates) catalogueIds.add(nodeTemplateId)
      return templates
    },
    isOfAllNodes: () => listedIds === fleet.ids(),
    async *install(order, signal) {
      const members = inReach()
      // One after the other: each install downloads the same packages. A node that has the template ends at once.
      for (const [index, member] of members.entries()) {
        for await (const progress of member.catalogue.install(order, signal)) {
          yield share(progress, index, members.length)
        }
        noteInstalled(member, order.nodeTemplateId)
      }
    },
  }
}

/** Returns a function that asks a node and notes its answer. A node that has not answered yet is not asked again. */
function createAsking(answers: WeakMap<Member, Answer>): (member: Member) => Promise<void> {
  const underway = new WeakMap<Member, Promise<void>>()
  const limited = limitConcurrency(asksAtOnce)
  const ask = async (member: Member): Promise<void> => {
    const limit = AbortSignal.timeout(askLimitMs)
    const instanceId = member.facts()?.instanceId
    const templates = await limited(() => member.catalogue.list(limit), limit)
    answers.set(member, { instanceId, templates })
  }
  return (member) => {
    const asking = underway.get(member) ?? ask(member).finally(() => underway.delete(member))
    underway.set(member, asking)
    return asking
  }
}

function merge(templates: readonly CatalogueTemplate[]): CatalogueTemplate[] {
  const found = new Map<string, CatalogueTemplate>()
  for (const template of templates) {
    const before = found.get(template.nodeTemplateId)
    const isInstalled = template.isInstalled && before?.isInstalled !== false
    found.set(template.nodeTemplateId, { ...template, isInstalled })
  }
  return [...found.values()]
}

function share(
  { label, fraction }: InstallProgress,
  index: number,
  count: number,
): InstallProgress {
  return { label, fraction: (index + fraction) / count }
}
