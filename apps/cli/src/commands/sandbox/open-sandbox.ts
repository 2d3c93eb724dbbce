import type { PlatformClient } from '@atoll/client/platform'
import type { SandboxAddress } from '../../attach.ts'

/** Resumes a paused sandbox. Does not change the end time of a running one. */
export async function openSandbox(platform: PlatformClient, id: string): Promise<SandboxAddress> {
  const sandbox = await platform.getSandbox(id)
  const isPaused = sandbox.state === 'paused'
  const opened = isPaused ? (await platform.connectSandbox(id)).sandbox : sandbox
  return { sandboxId: opened.sandboxID, accessToken: opened.envdAccessToken }
}
