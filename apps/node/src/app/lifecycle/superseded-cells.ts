/**
 * Paused cells whose sandboxes were restored in other cells, or replaced by newer content of another node. As long as the
 * folder of one has its name, the next start of the node would show the sandbox as paused again, with older state, once
 * it has ended. So a resume renames the folder before its answer. The files of the folder are removed afterwards.
 */
export interface SupersededCells {
  /** Renames the folder of a paused cell. After a failure, `clear` tries again. */
  retire(sandboxId: string, cellId: string): Promise<void>
  /** Renames the folder of this sandbox that could not be renamed before, if there is one. */
  clear(sandboxId: string): Promise<void>
  /** Does what `clear` does, and waits until the files of the sandbox's retired folders are removed. */
  finish(sandboxId: string): Promise<void>
  /** Waits for all removals in progress. */
  settle(): Promise<void>
}

export interface SupersededCellPorts {
  /** Renames the folder of a cell that has nothing else on the host. The returned function removes its files. */
  retire(cellId: string): Promise<() => Promise<void>>
  /** Reports files that could not be removed; the next start of the node removes them. */
  onRemovalError(error: unknown): void
}

export function createSupersededCells(ports: SupersededCellPorts): SupersededCells {
  /** Cells whose folder still has its name, by sandbox. */
  const named = new Map<string, string>()
  /** Removals in progress, by sandbox. They never fail. */
  const removals = new Map<string, Promise<void>>()

  async function clear(sandboxId: string): Promise<void> {
    const cellId = named.get(sandboxId)
    if (cellId === undefined) return
    const removeFiles = await ports.retire(cellId)
    named.delete(sandboxId)
    const before = removals.get(sandboxId)
    const remove = async () => {
      await removeFiles().catch(ports.onRemovalError)
      await before
    }
    const removal = remove().finally(() => {
      if (removals.get(sandboxId) === removal) removals.delete(sandboxId)
    })
    removals.set(sandboxId, removal)
  }

  return {
    clear,
    async retire(sandboxId, cellId) {
      named.set(sandboxId, cellId)
      // The sandbox runs already, so the resume succeeds anyway.
      await clear(sandboxId).catch(() => {})
    },
    async finish(sandboxId) {
      await clear(sandboxId)
      await removals.get(sandboxId)
    },
    settle: async () => void (await Promise.all(removals.values())),
  }
}
