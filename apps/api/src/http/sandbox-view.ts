import { clientId } from '@atoll/contracts/sandbox-views'
import type { ListedSandbox, Sandbox, SandboxDetail } from '@atoll/contracts/sandbox-views'
import type { z } from 'zod'
import { shownState } from '../domain/sandbox.ts'
import type { StartedSandbox } from '../domain/sandbox.ts'

/** How the platform API shows a sandbox; what is unset is left out. */

export type TokenOf = (sandbox: StartedSandbox) => string | undefined

export function toView(sandbox: StartedSandbox, tokenOf: TokenOf): z.infer<typeof Sandbox> {
  const { id, templateId, alias, envdVersion } = sandbox
  const envdAccessToken = tokenOf(sandbox)
  return {
    sandboxID: id,
    templateID: templateId,
    clientID: clientId,
    envdVersion,
    ...(alias !== undefined && { alias }),
    ...(envdAccessToken !== undefined && { envdAccessToken }),
  }
}

export function toListed(sandbox: StartedSandbox): z.infer<typeof ListedSandbox> {
  const { alias, resources, metadata } = sandbox
  return {
    sandboxID: sandbox.id,
    templateID: sandbox.templateId,
    clientID: clientId,
    ...(alias !== undefined && { alias }),
    startedAt: sandbox.startedAt.toISOString(),
    endAt: sandbox.endAt.toISOString(),
    cpuCount: resources.cpuCount,
    memoryMB: resources.memoryMb,
    diskSizeMB: resources.diskSizeMb,
    ...(metadata && { metadata }),
    state: shownState(sandbox) ?? 'running',
    envdVersion: sandbox.envdVersion,
  }
}

export function toDetail(sandbox: StartedSandbox, tokenOf: TokenOf): z.infer<typeof SandboxDetail> {
  const { allowInternetAccess, lifecycle } = sandbox
  const envdAccessToken = tokenOf(sandbox)
  return {
    ...toListed(sandbox),
    ...(envdAccessToken !== undefined && { envdAccessToken }),
    ...(allowInternetAccess !== undefined && { allowInternetAccess }),
    lifecycle: {
      autoResume: lifecycle.autoResume,
      onTimeout: lifecycle.autoPause ? 'pause' : 'kill',
    },
  }
}
