import { ChangeKind, EntryType } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ServiceImpl } from '@connectrpc/connect'
import type { NodeState } from './sandbox.ts'

/** Changed files of simulated sandboxes: whole files, without directories. */
export interface SimulatedChanges {
  /** Sets the content before and after of a file in a sandbox. */
  set(id: string, path: string | Buffer, sides: SimulatedSides): void
}

export interface SimulatedSides {
  readonly before?: string | Buffer
  readonly after?: string | Buffer
}

type Methods = Pick<ServiceImpl<typeof NodeService>, 'listChanges' | 'readChange'>

export function simulateChanges({
  running,
  paused,
  failures,
}: NodeState): SimulatedChanges & { readonly methods: Methods } {
  const changed = new Map<string, Map<string, SimulatedSides>>()
  function filesOf(id: string): Map<string, SimulatedSides> {
    failures.throwIfDown()
    const sandbox = running.get(id) ?? paused.get(id)
    if (!sandbox) throw new ConnectError(`Sandbox ${id} does not exist`, Code.NotFound)
    return changed.get(id) ?? new Map()
  }
  return {
    set(id, path, sides) {
      const files = changed.get(id) ?? new Map<string, SimulatedSides>()
      changed.set(id, files.set(Buffer.from(path).toString('latin1'), sides))
    },
    methods: {
      listChanges({ sandboxId, path, after, limit }) {
        const [above, last] = [path, after].map((bytes) => Buffer.from(bytes).toString('latin1'))
        if (!above?.startsWith('/')) throw new ConnectError('Bad path', Code.InvalidArgument)
        const all = [...filesOf(sandboxId)]
          .filter(([name]) => above === '/' || name === above || name.startsWith(`${above}/`))
          .filter(([name]) => !last || name > last)
          .toSorted(([one], [other]) => (one < other ? -1 : 1))
        const page = all.slice(0, limit)
        const next = all.length > limit ? page.at(-1)?.[0] : undefined
        return {
          changes: page.map(([name, sides]) => toChange(name, sides)),
          isComplete: true,
          ...(next && { next: Buffer.from(next, 'latin1') }),
        }
      },
      readChange({ sandboxId, path }) {
        const { before, after } = filesOf(sandboxId).get(Buffer.from(path).toString('latin1')) ?? {}
        return {
          ...(before !== undefined && { before: toSide(before) }),
          ...(after !== undefined && { after: toSide(after) }),
        }
      },
    },
  }
}

function toChange(name: string, { before, after }: SimulatedSides) {
  const kind = before === undefined ? ChangeKind.ADDED : ChangeKind.MODIFIED
  return {
    path: Buffer.from(name, 'latin1'),
    kind: after === undefined ? ChangeKind.DELETED : kind,
    type: EntryType.FILE,
    sizeBytes: BigInt(Buffer.from(after ?? before ?? '').length),
    mode: 0o644,
    modifiedAtMs: 1_767_225_600_000n,
  }
}

function toSide(content: string | Buffer) {
  const bytes = Buffer.from(content)
  return { type: EntryType.FILE, sizeBytes: BigInt(bytes.length), mode: 0o644, content: bytes }
}
