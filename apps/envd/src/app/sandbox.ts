/** What the daemon knows about its sandbox, and the one way to change it. */
import type { Clock } from '@atoll/kit/clock'
import { applyChange, systemVariables } from '../domain/sandbox/settings.ts'
import type { Settings, SettingsChange, SettingsStore } from '../domain/sandbox/settings.ts'
import type { Variables } from '../domain/process/environment.ts'

export interface Sandbox {
  /** Undefined until the node has spoken: nobody else is let in before. */
  settings(): Settings | undefined
  change(change: SettingsChange): Promise<void>
}

export interface SandboxDeps {
  readonly store: SettingsStore
  /** Shows the platform's variables to programs that look for them in files. */
  readonly publish: (variables: Variables) => Promise<void>
  readonly clock: Clock
  /** Gives the system the name of the sandbox, where it may have had another; never fails. */
  readonly setHostName: (sandboxId: string, oldId: string | undefined) => Promise<void>
  /** The sandbox may be somewhere else than before; never fails. */
  readonly updateForwards: () => Promise<void>
  /** Sets the clock of the system, where that is permitted; never fails. */
  readonly stepClock: (to: Date) => Promise<void>
  /** Makes programs trust this authority; never fails. */
  readonly trust: (caBundle: string) => Promise<void>
  /** This is another sandbox from now on, as after a start from a copy of one. */
  readonly onSandboxIdChange: () => void
}

export async function openSandbox(deps: SandboxDeps): Promise<Sandbox> {
  let settings = await deps.store.load()
  if (settings) await deps.publish(systemVariables(settings))
  let lastChange = Promise.resolve()
  return {
    settings: () => settings,
    /** One after the other, so that an older change never overtakes a newer one. */
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
    // What goes wrong belongs in the log of the new one.
    if (change.caBundle !== undefined) await deps.trust(change.caBundle)
  }
}

/** A clock that is ahead is left alone longer: stepping back disturbs programs more than stepping forward. */
function isClockOff(timestampMs: number, now: Date): boolean {
  const behindMs = timestampMs - now.getTime()
  return behindMs > 50 || behindMs < -5000
}
