import { readFileSync } from 'node:fs'

export interface Config {
  readonly port: number
  /** Path of the guest program, which starts commands under the right user. */
  readonly guestProgram: string
  /** Secret that the node sends to endpoints such as /init. If absent, those endpoints reject every request. */
  readonly initToken?: string | undefined
  readonly stateFile: string
  /** Path of the native pty addon. If absent, it is loaded from node_modules. */
  readonly terminalAddon?: string | undefined
  /** Path of the native koffi addon, which calls libc. If absent, it is loaded from node_modules. */
  readonly libcAddon?: string | undefined
  readonly path: string
}

export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  return {
    port: parsePort(env['ATOLL_ENVD_PORT'] ?? '49983'),
    guestProgram: env['ATOLL_GUEST'] || '/.atoll/guest',
    initToken: env['ATOLL_INIT_TOKEN'] || contentOf(env['ATOLL_INIT_TOKEN_FILE']),
    stateFile: env['ATOLL_STATE_FILE'] || '/run/atoll/envd.json',
    terminalAddon: env['ATOLL_PTY_ADDON'] || undefined,
    libcAddon: env['ATOLL_LIBC_ADDON'] || undefined,
    path: env['PATH'] || '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  }
}

/** Reads a secret from a file, which other processes cannot see, unlike the environment of envd. */
function contentOf(path: string | undefined): string | undefined {
  return path ? readFileSync(path, 'utf8').trim() || undefined : undefined
}

function parsePort(text: string): number {
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port < 65_536) return port
  throw new Error(
    `Invalid configuration: ATOLL_ENVD_PORT must be a port (0 to 65535), not '${text}'`,
  )
}
