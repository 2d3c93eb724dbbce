import { Fault } from '@atoll/kit/fault'
import type { Slot } from './slot.ts'

/** What was asked for. */
export interface SandboxSpec {
  readonly sandboxId: string
  readonly templateId: string
  readonly cpuCount: number
  readonly memoryMb: number
  readonly diskSizeMb: number
}

/** What the node keeps in the sandbox's folder: enough to adopt it, or to remove every trace of it. */
export interface SandboxRecord extends SandboxSpec {
  /** `creating` is never adopted: whoever was creating it is dead. */
  readonly phase: 'creating' | 'running'
  readonly slotNumber: number
  /** The folder that is its `/.atoll`, by name: it must not go before the sandbox does. */
  readonly envd: string
  readonly process?: ProcessIdentity
}

/** A process id alone may name another process later; with the boot and the tick of its start it cannot. */
export interface ProcessIdentity {
  readonly pid: number
  readonly started: string
}

export interface RunningSandbox {
  readonly record: SandboxRecord
  readonly slot: Slot
}

/** How envd of a new sandbox is told who it is. */
export interface Introduction {
  readonly sandboxId: string
  readonly templateId: string
  readonly accessToken: string | undefined
  readonly envVars: Readonly<Record<string, string>>
  /** What it was given: under runc its kernel shows what the machine has. */
  readonly cpuCount: number
  readonly memoryMb: number
}

export interface Runtime {
  readonly name: 'gvisor' | 'runc'
  /** Added to every uid and gid that the sandbox stores on its disk. */
  readonly idShift: number
  /** Starts the first process, detached from us, and gives its identity on the host. */
  start(request: StartRequest): Promise<ProcessIdentity>
  /** Ends everything of the sandbox. Succeeds when there is nothing. */
  remove(sandboxId: string): Promise<void>
  /** Ids that the runtime knows of, whatever their state. */
  list(): Promise<string[]>
}

export interface StartRequest {
  readonly spec: SandboxSpec
  readonly slot: Slot
  readonly rootfs: string
  readonly bundleDir: string
  readonly envdDir: string
  readonly initToken: string
  /** Whether the template has a `sudo` to stand in for. */
  readonly hasSudo: boolean
}

const idPattern = /^[a-z0-9]{1,63}$/

/** The id becomes a folder, a cgroup and a host name: nothing but letters and digits may be in it. */
export function checkSpec(spec: SandboxSpec): void {
  if (!idPattern.test(spec.sandboxId)) {
    throw new Fault('invalid', 'bad_sandbox_id', 'sandbox_id must be lower-case letters and digits')
  }
  if (spec.cpuCount < 1 || spec.memoryMb < 128 || spec.diskSizeMb < 16) {
    throw new Fault(
      'invalid',
      'bad_limits',
      'A sandbox needs at least 1 CPU, 128 MB of memory and 16 MB of disk',
    )
  }
}
