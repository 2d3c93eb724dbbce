import type { NodeFacts } from '../node.ts'

type Saver = Pick<NodeFacts, 'memoryFormat' | 'cpuFeatures' | 'machine'>

/**
 * Whether a node can restore memory that another one saves, as far as both say: agents of older releases say neither the
 * format nor the features.
 */
export function canRestore(node: Saver, saver: Saver): boolean {
  return (
    isSameOrUnknown(node.machine.cpuArchitecture, saver.machine.cpuArchitecture) &&
    isSameOrUnknown(node.memoryFormat, saver.memoryFormat) &&
    (node.cpuFeatures.length === 0 || includesAll(node.cpuFeatures, saver.cpuFeatures))
  )
}

function isSameOrUnknown(one: string, other: string): boolean {
  return one === '' || other === '' || one === other
}

/** Programs in saved memory have chosen their instructions already. */
function includesAll(present: readonly string[], needed: readonly string[]): boolean {
  const known = new Set(present)
  return needed.every((feature) => known.has(feature))
}
