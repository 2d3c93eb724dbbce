/** Settings of the sandbox, and the only way to change them. */
import type { Clock } from '@atoll/kit/clock'
import { applyChange, systemVariables } from '../domain/sandbox/settings.ts'
import type { Settings, SettingsChange, SettingsStore } from '../domain/sandbox/settings.ts'
import type { Variables } from '../domain/process/environment.ts'

export interface Sandbox {
  /** Undefined until the node has called /init; envd rejects clients before. */
  settings(): Settings | undefined
  change(change: SettingsChange): Promise<void>
}

export interface SandboxDeps {
  readonly store: SettingsStore
  /** Writes the platform's variables to files, for programs that read them there. */
  readonly publish: (variables: Variables) => Promise<void>
  readonly clock: Clock
  /** Sets the host name to the sandbox ID. Never rejects. */
  readonly setHostName: (sandboxId: string, oldId: string | undefined) => Promise<void>
  /** Moves port forwards to the current address of the sandbox. Never rejects. */
  readonly updateForwards: () => Promise<void>
  /** Sets the system clock, where permitted. Never rejects. */
  readonly stepClock: (to: Date) => Promise<void>
  /** Installs a CA certificate. Never rejects. */
  readonly trust: (caBundle: string) => Promise<void>
  /** Called when the sandbox ID changed, as after a start from a snapshot or prototype. */
  readonly onSandboxIdChange: () => void
}

export async function openSandbox(deps: SandboxDeps): Promise<Sandbox> {
  let settings = await deps.store.load()
  if (settings) await deps.publish(systemVariables(settings))
  let lastChange = Promise.resolve()
  return {
    settings: () => settings,
    /** Changes are serialized, so that an older one never overwrites a newer one. */
    change(change) {
      const done = lastChange.then(() => apply(change))
      lastChange = done.catch(() => {})
      return done
    },
  }

  async function apply(change: SettingsChange): Promise<void> {
    const changed = applyChange(settings, change)
    if (changed === undefined) return
    const { sandboxId } = changed
    const oldId = settings?.sandboxId
    const stepTo = change.timestampMs
    await Promise.all([
      deps.store.save(changed),
      deps.publish(systemVariables(changed)),
      deps.updateForwards(),
      sandboxId !== undefined && sandboxId !== oldId && deps.setHostName(sandboxId, oldId),
      stepTo !== undefined &&
        isClockOff(stepTo, deps.clock.now()) &&
        deps.stepClock(new Date(stepTo)),
    ])
    settings = changed
    if (sandboxId !== oldId) deps.onSandboxIdChange()
    // Runs last, so that failures are logged under the new sandbox ID.
    if (change.caBundle !== undefined) await deps.trust(change.caBundle)
  }
}

/** Tolerates 5 s ahead but only 50 ms behind: a step back disturbs programs more than a step forward. */
function isClockOff(timestampMs: number, now: Date): boolean {
  const behindMs = timestampMs - now.getTime()
  return behindMs > 50 || behindMs < -5000
}
