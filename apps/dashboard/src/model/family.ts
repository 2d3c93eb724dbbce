import type { LineageSandbox, LineageSnapshot, SandboxLineage } from '@atoll/client/replies'

/** A row of the family tree: `depth` is the number of its ancestors. */
export type FamilyRow = { readonly depth: number } & (
  | { readonly kind: 'sandbox'; readonly sandbox: LineageSandbox }
  | { readonly kind: 'snapshot'; readonly snapshot: LineageSnapshot }
  /** An ancestor that ended so long ago that only its ID is known. */
  | { readonly kind: 'gone'; readonly id: string }
)

/** Lists the tree from its roots downwards: each sandbox, then its snapshots, then its copies. */
export function toFamilyRows({ sandboxes, snapshots }: SandboxLineage): FamilyRow[] {
  const known = new Set(sandboxes.map(({ sandboxID }) => sandboxID))
  const copies = Map.groupBy(sandboxes, ({ parent }) => parent?.sandboxID)
  const rows: FamilyRow[] = []
  const seen = new Set<string>()
  const add = (sandbox: LineageSandbox, depth: number) => {
    if (seen.has(sandbox.sandboxID)) return
    seen.add(sandbox.sandboxID)
    rows.push({ depth, kind: 'sandbox', sandbox })
    for (const snapshot of snapshots) {
      if (snapshot.sandboxID !== sandbox.sandboxID) continue
      rows.push({ depth: depth + 1, kind: 'snapshot', snapshot })
    }
    for (const copy of copies.get(sandbox.sandboxID) ?? []) add(copy, depth + 1)
  }
  for (const [parentId, children] of copies) {
    if (parentId !== undefined && known.has(parentId)) continue
    if (parentId !== undefined) rows.push({ depth: 0, kind: 'gone', id: parentId })
    for (const child of children) add(child, parentId === undefined ? 0 : 1)
  }
  return rows
}
