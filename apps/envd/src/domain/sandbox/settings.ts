/** Settings that the node sends with POST /init. Unknown keys are ignored, because a newer node may send more. */
import { Fault } from '@atoll/kit/fault'
import { parseCertificates } from '../trust/certificates.ts'
import type { Variables } from '../process/environment.ts'

export interface Settings {
  /** If absent, the sandbox is not secured and envd admits every caller. */
  readonly accessToken?: string | undefined
  readonly envVars: Variables
  readonly defaultUser: string
  readonly defaultWorkdir?: string | undefined
  readonly sandboxId?: string | undefined
  readonly templateId?: string | undefined
  /** CPU and memory limits of the sandbox, for kernels that do not show them. */
  readonly cpuCount?: number | undefined
  readonly memoryMb?: number | undefined
  /** Unix time in milliseconds at which the newest settings were made. */
  readonly timestampMs?: number | undefined
}

/** Absent fields keep their values, except the access token, which is cleared. */
export type SettingsChange = { readonly [Key in keyof Settings]?: Settings[Key] | undefined } & {
  /** PEM certificates of the egress CA to trust. */
  readonly caBundle?: string | undefined
}

export interface SettingsStore {
  load(): Promise<Settings | undefined>
  /**
   * Never rejects. Settings that could not be saved are lost at a restart; envd then rejects clients until the next
   * /init.
   */
  save(settings: Settings): Promise<void>
}

/**
 * Returns undefined if `change` is older than the current settings. A change for another sandbox ID always applies:
 * this sandbox is a copy, and the clock of the machine that made it may be behind.
 */
export function applyChange(
  current: Settings | undefined,
  change: SettingsChange,
): Settings | undefined {
  const { timestampMs = current?.timestampMs } = change
  const isOther = change.sandboxId !== undefined && change.sandboxId !== current?.sandboxId
  const isOlder = timestampMs !== undefined && timestampMs < (current?.timestampMs ?? -Infinity)
  if (isOlder && !isOther) return undefined
  return {
    accessToken: change.accessToken,
    envVars: change.envVars ?? current?.envVars ?? {},
    defaultUser: change.defaultUser || current?.defaultUser || 'root',
    defaultWorkdir: change.defaultWorkdir || current?.defaultWorkdir,
    sandboxId: change.sandboxId ?? current?.sandboxId,
    templateId: change.templateId ?? current?.templateId,
    cpuCount: change.cpuCount ?? current?.cpuCount,
    memoryMb: change.memoryMb ?? current?.memoryMb,
    timestampMs,
  }
}

/** Variables of every process in this sandbox. `envVars` override `defaults`, but not the platform's variables. */
export function globalVariables(settings: Settings, defaults: Variables): Variables {
  return { ...defaults, ...settings.envVars, ...systemVariables(settings) }
}

export function systemVariables({ sandboxId, templateId }: Settings): Variables {
  return {
    E2B_SANDBOX: 'true',
    ...(sandboxId !== undefined && { E2B_SANDBOX_ID: sandboxId }),
    ...(templateId !== undefined && { E2B_TEMPLATE_ID: templateId }),
  }
}

export function parseChange(body: unknown): SettingsChange {
  if (!isObject(body)) refuse('The request body must be a JSON object')
  const accessToken = text(body, 'accessToken')
  if (accessToken === '') refuse('accessToken is empty. Omit it, or send a token.')
  return {
    accessToken,
    envVars: variables(body['envVars']),
    defaultUser: text(body, 'defaultUser'),
    defaultWorkdir: text(body, 'defaultWorkdir'),
    sandboxId: text(body, 'sandboxId'),
    templateId: text(body, 'templateId'),
    cpuCount: amount(body, 'cpuCount'),
    memoryMb: amount(body, 'memoryMb'),
    timestampMs: timestamp(text(body, 'timestamp')),
    caBundle: certificates(body['caBundle']),
  }
}

function text(body: Readonly<Record<string, unknown>>, key: string): string | undefined {
  const value = body[key]
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string' || value.includes('\0'))
    refuse(`${key} must be a string without NUL`)
  return value
}

function amount(body: Readonly<Record<string, unknown>>, key: string): number | undefined {
  const value = body[key]
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'number' || !(value > 0)) refuse(`${key} must be a number above zero`)
  return value
}

function variables(value: unknown): Variables | undefined {
  if (value === undefined || value === null) return undefined
  if (!isObject(value)) refuse('envVars must be an object of strings')
  return Object.fromEntries(
    Object.entries(value).map(([name, content]): [string, string] => {
      if (typeof content !== 'string' || content.includes('\0')) {
        refuse(`envVars.${name} must be a string without NUL`)
      }
      if (name === '' || /[=\0]/.test(name))
        refuse(
          `envVars has the invalid name '${name}'. Names must not be empty or contain = or NUL.`,
        )
      return [name, content]
    }),
  )
}

function certificates(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : parseCertificates(value)
}

function timestamp(value: string | undefined): number | undefined {
  if (value === undefined || value === '') return undefined
  const ms = Date.parse(value)
  if (Number.isNaN(ms))
    refuse(`timestamp '${value}' is invalid. Use a form such as 2026-01-31T12:00:00Z.`)
  return ms
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function refuse(message: string): never {
  throw new Fault('invalid', 'bad_init', message)
}
