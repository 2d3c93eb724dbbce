import type { PlatformClient } from '@atoll/client/platform'
import type { SandboxAddress } from '../../attach.ts'

/** What is needed to talk to a sandbox. One that is paused is resumed; the end of a running one stays as it is. */
export async function openSandbox(platform: PlatformClient, id: string): Promise<SandboxAddress> {
  const sandbox = await platform.getSandbox(id)
  const isPaused = sandbox.state === 'paused'
  const opened = isPaused ? (await platform.connectSandbox(id)).sandbox : sandbox
  return { sandboxId: opened.sandboxID, accessToken: opened.envdAccessToken }
}
