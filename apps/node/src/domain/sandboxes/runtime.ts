import type { Slot } from '../network/slot.ts'
import type { CellRecord } from './cell.ts'
import type { IdleLevel } from './idle-level.ts'
import type { ProcessIdentity } from './process-identity.ts'

/** An OCI runtime that runs the processes of cells. */
export interface Runtime {
  readonly name: 'gvisor' | 'runc'
  /**
   * Whether a thread inside notices only when it next runs that the host kernel has killed its process. The exit is not
   * reported and the memory is not freed until all threads have noticed.
   */
  readonly noticesKillsLate: boolean
  /** Offset added to every uid and gid that the sandbox stores on its disk. */
  readonly idShift: number
  /** Installed release of the runtime. */
  release(): Promise<string>
  /** Version of the checkpoint format; undefined when the runtime cannot checkpoint memory. */
  memoryFormat(): Promise<string | undefined>
  /** Starts the first process, detached from the node, and returns its identity on the host. */
  start(request: StartRequest): Promise<ProcessIdentity>
  /** Does what `start` does, but restores the memory that `saveMemory` wrote. */
  restore(request: StartRequest, memoryDir: string): Promise<ProcessIdentity>
  /** Makes cells ahead of a restore; absent when the runtime cannot. */
  readonly blanks?: BlankRuntime
  /** Stops all processes until `thaw`. */
  freeze(cellId: string): Promise<void>
  /** Succeeds when the cell is not frozen. */
  thaw(cellId: string): Promise<void>
  /**
   * Writes the memory and state of a frozen cell, without its disk, to a folder. The fault's message says what prevents
   * it.
   */
  saveMemory(cellId: string, memoryDir: string, options?: SaveOptions): Promise<void>
  /** Sets the host name from the host, where the sandbox cannot set it itself. */
  setHostname(process: ProcessIdentity, name: string): Promise<void>
  /** Sets how late timers of the sandbox may fire. */
  setIdleLevel(process: ProcessIdentity, rest: IdleLevel): void
  /**
   * Names of pending requests whose answering process is dead. Names are stable, so a later call can recognize them.
   */
  orphanedRequests(process: ProcessIdentity): readonly string[]
  /** Kills and removes everything of the cell. Succeeds when there is nothing. */
  remove(cellId: string): Promise<void>
  /** IDs of all cells that the runtime knows, in any state. */
  list(): Promise<string[]>
}

/**
 * Makes the processes of a cell before its disk and memory are known. A later restore into such a blank cell is two to
 * four times as fast.
 */
export interface BlankRuntime {
  /** Whether the installed release can do this. */
  isSupported(): Promise<boolean>
  /** Starts the processes. The root file system of the request is not used. */
  create(request: StartRequest): Promise<ProcessIdentity>
  /**
   * Restores memory into a blank cell, once. The sizes, the envd and `hasSudo` must be the same as at its
   * creation. After a failure the cell is useless.
   */
  restore(request: StartRequest, memoryDir: string): Promise<ProcessIdentity>
}

export interface SaveOptions {
  /** Memory in use by the cell's processes, as far as known. */
  readonly memoryBytes?: number
  /** Called when connections that the peer has not answered yet prevent the checkpoint. */
  endHalfOpen?(): Promise<void>
  /**
   * Called when the memory is written, perhaps more than once: the sandbox writes to no file after the last call. The
   * runtime waits for it, and checks the memory meanwhile.
   */
  flushFiles?(): Promise<void>
}

export interface StartRequest {
  readonly cell: CellRecord
  readonly slot: Slot
  readonly rootfs: string
  readonly bundleDir: string
  readonly envdDir: string
  /** Whether the template has a `sudo` to replace. */
  readonly hasSudo: boolean
}
