import type { PlatformClient } from '@atoll/client/platform'
import { Fault } from '@atoll/kit/fault'
import { findUrls } from '../../access.ts'
import type { CliContext } from '../../context.ts'

/** Connects as an operator. Needs no API key. */
export async function openNodes(context: CliContext): Promise<PlatformClient> {
  const { adminToken } = context.config
  if (adminToken === undefined) {
    throw new Fault(
      'unauthenticated',
      'no_admin_token',
      'Only operators manage nodes: set ATOLL_ADMIN_TOKEN to the token that the server has',
    )
  }
  const { createPlatformClient } = await import('@atoll/client/platform')
  const { apiUrl } = await findUrls(context.config)
  return createPlatformClient({ url: apiUrl, adminToken })
}
