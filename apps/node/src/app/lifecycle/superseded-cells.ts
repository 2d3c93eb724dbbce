/**
 * Paused cells whose sandboxes were restored in other cells. Their folders are removed after the restore. As long as
 * one is there, the next start of the node would show the sandbox as paused again, with older state, once it has ended.
 */
export interface SupersededCells {
  /** Removes the folder of a paused cell. After a failure, `clear` tries again. */
  remove(sandboxId: string, cellId: string): Promise<void>
  /** Removes the folder that a resume of this sandbox could not remove, if there is one. */
  clear(sandboxId: string): Promise<void>
}

export function createSupersededCells(
  removeFiles: (cellId: string) => Promise<void>,
): SupersededCells {
  const left = new Map<string, string>()

  async function clear(sandboxId: string): Promise<void> {
    const cellId = left.get(sandboxId)
    if (cellId === undefined) return
    await removeFiles(cellId)
    left.delete(sandboxId)
  }

  return {
    clear,
    async remove(sandboxId, cellId) {
      left.set(sandboxId, cellId)
      // The sandbox runs already, so the resume succeeds anyway.
      await clear(sandboxId).catch(() => {})
    },
  }
}
