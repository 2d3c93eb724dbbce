import type { CellRecord, Owner } from './cell.ts'
import type { Rest } from './rest.ts'
import type { Slot } from './slot.ts'

/** A process id alone may name another process later; with the boot and the tick of its start it cannot. */
export interface ProcessIdentity {
  readonly pid: number
  readonly started: string
}

/** A cell with an owner and processes. */
export interface RunningSandbox {
  readonly record: CellRecord & { readonly owner: Owner }
  readonly slot: Slot
}

/** A cell with an owner, on disk alone. */
export type PausedSandbox = CellRecord & { readonly owner: Owner }

/** Who a sandbox is. */
export interface Identity {
  readonly sandboxId: string
  /** Absent: its envd answers without one. */
  readonly accessToken: string | undefined
}

/** How envd is told who it is. What is absent stays as envd knows it, but for the token. */
export interface Introduction extends Identity {
  readonly templateId: string
  /** Who runs what is started without saying by whom. */
  readonly defaultUser: string
  /** Undefined: the home of whoever runs it. */
  readonly defaultWorkdir: string | undefined
  readonly envVars?: Readonly<Record<string, string>>
  /** Authorities that programs are to trust, in PEM. */
  readonly caBundle?: string
  /** What it was given: under runc its kernel shows what the machine has. */
  readonly cpuCount: number
  readonly memoryMb: number
}

export interface Runtime {
  readonly name: 'gvisor' | 'runc'
  /**
   * Whether a thread inside finds out only when it next runs that the kernel of the host has ended its process. Until all of
   * them have, nobody hears of the end, and the memory is not free.
   */
  readonly noticesLate: boolean
  /** Added to every uid and gid that the sandbox stores on its disk. */
  readonly idShift: number
  /** Which one this machine has. */
  release(): Promise<string>
  /** Which of its versions can read what it keeps of memory; undefined when it keeps none. */
  memoryFormat(): Promise<string | undefined>
  /** Starts the first process, detached from us, and gives its identity on the host. */
  start(request: StartRequest): Promise<ProcessIdentity>
  /** Like `start`, but goes on from what `saveMemory` wrote. */
  restore(request: StartRequest, memoryDir: string): Promise<ProcessIdentity>
  /** Nothing inside goes on until `thaw`. */
  freeze(cellId: string): Promise<void>
  /** Succeeds when it is not frozen. */
  thaw(cellId: string): Promise<void>
  /**
   * Writes all of a frozen one but its disk into a folder; what stands in the way is in the fault's message.
   * `endHalfOpen` is called where connections do that nobody has answered yet.
   */
  saveMemory(cellId: string, memoryDir: string, endHalfOpen?: () => Promise<void>): Promise<void>
  /** Where the sandbox cannot do it itself. */
  setHostname(process: ProcessIdentity, name: string): Promise<void>
  /** How late it may be with what it does by time. */
  rest(process: ProcessIdentity, rest: Rest): void
  /** What it waits for in vain, since who was to answer is dead; named, so that the same is known again later. */
  lostAnswers(process: ProcessIdentity): readonly string[]
  /** Ends everything of the cell. Succeeds when there is nothing. */
  remove(cellId: string): Promise<void>
  /** Ids that the runtime knows of, whatever their state. */
  list(): Promise<string[]>
}

export interface StartRequest {
  readonly cell: CellRecord
  readonly slot: Slot
  readonly rootfs: string
  readonly bundleDir: string
  readonly envdDir: string
  /** Whether the template has a `sudo` to stand in for. */
  readonly hasSudo: boolean
}
